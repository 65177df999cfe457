//! Checks whether a load used Fast Open as its mode and its cookies promise.

use firstflight_load::ledger::Count;
use firstflight_load::promise::{Connection, FastOpen, Given, Promise, TlsPromise};
use serde::Serialize;

use crate::job::Job;
use crate::load::Loaded;
use crate::page::SimPage;

/// The proof of the treatment by the ledger. There is no kernel to ask: the simulated wire is the only witness.
#[derive(Debug, Clone, Serialize)]
pub struct Proof {
    /// Whether the ledger shows what the mode promises.
    pub ok: bool,
    /// The witnesses.
    pub witnesses: [&'static str; 1],
    /// The ledger's counts.
    pub ledger: Count,
    /// Every contradiction, as text.
    pub disagreements: Vec<String>,
}

/// Compares the ledger with the promise of the mode, as the lab does.
pub(crate) fn proof(page: &SimPage, job: &Job, loaded: &Loaded) -> Proof {
    let promise = Promise {
        tls12_hosts: job.load.tls12_hosts(page.recorded.iter().map(Option::as_ref)),
        ..promise(job)
    };
    let used: Vec<(u32, Connection<'_>)> = loaded
        .used()
        .map(|(connection, entry)| (connection.conn.0, (page.hosts[connection.origin], entry)))
        .collect();
    let seen = || used.iter().map(|(_, seen)| *seen);
    let given: Given = seen().collect();
    let mut disagreements = Vec::new();
    for (number, connection) in &used {
        let server = loaded.servers[*number as usize].as_ref();
        let breach = promise.broken_by(*connection, &given);
        let client = loaded.clients[*number as usize];
        if let Some(problem) = breach.or_else(|| promise.broken_by_ends(*connection, server, client)) {
            disagreements.push(format!("connection {number}: {problem}"));
        }
    }
    disagreements.extend(promise.fast_open.crowded(seen()));
    Proof {
        ok: disagreements.is_empty(),
        witnesses: ["ledger"],
        ledger: seen().map(|(_, entry)| entry).collect(),
        disagreements,
    }
}

/// The promise of the load. If a what-if changes the rules of cookies, nothing is promised of them.
fn promise(job: &Job) -> Promise {
    let promise = job.load.promise();
    Promise {
        fast_open: match promise.fast_open {
            FastOpen::Cookies { .. } if !job.what_if.leaves_cookies() => FastOpen::Agreement,
            FastOpen::Cookies { cookies, seed } => FastOpen::Cookies {
                cookies: job.what_if.cookies(cookies),
                seed,
            },
            other => other,
        },
        // With this what-if a server sends less until the client has proved its address.
        initial_window: job.what_if.unproven.is_none().then_some(job.initial_window),
        congestion_control: Some(job.congestion_control.over_tcp().name().to_owned()),
        tls: promise.tls.map(|tls| match job.what_if.early_data {
            Some(_) => TlsPromise {
                sessions: None,
                early_data: true,
                ..tls
            },
            None => tls,
        }),
        ..promise
    }
}
