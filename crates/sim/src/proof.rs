//! Whether a load used Fast Open as its mode and its cookies promise.

use firstflight_load::ledger::Count;
use firstflight_load::promise::{Connection, FastOpen, Given, Promise, TlsPromise};
use serde::Serialize;

use crate::job::Job;
use crate::load::Loaded;
use crate::page::SimPage;

/// What the ledger says of the treatment. There is no kernel to ask: the simulated wire is the only witness.
#[derive(Debug, Clone, Serialize)]
pub struct Proof {
    /// Whether the ledger shows what the mode promises.
    pub ok: bool,
    /// Who testifies.
    pub witnesses: [&'static str; 1],
    /// What was counted.
    pub ledger: Count,
    /// Every contradiction, in words.
    pub disagreements: Vec<String>,
}

/// Holds the ledger against what the mode promises, as the lab does.
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

/// What is promised of the load; nothing of cookies where what is simulated changes their rules.
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
        // Before a client has proved its address its server may send less.
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
