//! The server under load, built-in or a program, in its own network namespace.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;

use firstflight_load::{Cookies, EarlyRequests, Priorities};
use firstflight_page::Page;
use serde::Deserialize;

use super::kernel::Kernel;
use super::meter::Tasks;
use crate::error::ServerProblem;
use crate::namespace::{self, Containment};
use crate::net::{self, AddressPlan, Side, Transport};
use crate::origin::{Answers, Bodies, Headers, Log, Served, Servers, ServersConfig, Waiting};
use crate::program::{Program, Running, Streams};
use crate::tun::{Offload, Tun};
use crate::{LabError, scheduling};
use firstflight_path::IpVersion;

/// The server's address.
pub(super) const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 19, 0, 1), 80);
/// The target of the clients' requests.
pub(super) const TARGET: &str = "/object";
const HOST: &str = "server.test";

/// The folder of a program's files, in the lab's own memory ([`crate::namespace::mount_scratch`]).
const FOLDER: &str = "/dev/shm/firstflight-server";

/// The server to measure.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ServerJob {
    /// The lab's own.
    Builtin {},
    /// Another program, which must stay in the foreground.
    Program {
        /// Its name or path, then its arguments. It starts in the folder of its files.
        argv: Vec<String>,
        /// The contents of its files, by their names in that folder.
        files: BTreeMap<String, String>,
    },
}

/// The settings of its namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) waiting: Waiting,
    pub(super) syn_cookies: u8,
    pub(super) body_bytes: usize,
}

/// A running server. It ends with the process.
pub(super) struct Server {
    /// Its end of the wire.
    pub(super) tun: Tun,
    /// The counters of its namespace.
    pub(super) kernel: Kernel,
    /// The tasks whose processor time is the server's.
    pub(super) tasks: Tasks,
    who: Who,
}

enum Who {
    Builtin(#[expect(dead_code, reason = "they run as long as this is kept")] Servers),
    Program(Running),
}

impl Server {
    /// Starts the server. Its threads and processes stay on the calling thread's processor.
    ///
    /// # Errors
    /// [`LabError`] when the namespace, a device or the program cannot be set up.
    pub(super) fn start(job: &ServerJob, settings: Settings) -> Result<Self, LabError> {
        match job {
            ServerJob::Builtin {} => scheduling::as_ordinary_task(|| builtin(settings)),
            ServerJob::Program { argv, files } => {
                write_files(files)?;
                let argv = argv.clone();
                let start = move || program(argv, settings).map(|server| (server, ()));
                // The namespace lives as long as the device and the program.
                namespace::in_new_network("server", start, |()| {})
            }
        }
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// [`LabError`] with what a program printed before it ended.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        let Who::Program(running) = &mut self.who else {
            return Ok(());
        };
        match running.try_wait()? {
            Some(status) => Err(self.problem(ServerProblem::Ended(status))),
            None => Ok(()),
        }
    }

    /// The error that it cannot be measured, with what it has printed.
    pub(super) fn problem(&self, problem: ServerProblem) -> LabError {
        let printed = match &self.who {
            Who::Program(running) if !running.output().is_empty() => {
                format!(" and said: {}", running.output())
            }
            _ => String::new(),
        };
        LabError::StressedServer { problem, printed }
    }
}

fn builtin(settings: Settings) -> Result<Server, LabError> {
    let page = page(settings.body_bytes)?;
    let served = Served {
        page: &page,
        bodies: &Bodies::new(),
        headers: &Headers::new(),
    };
    let (servers, tun) = Servers::start(ServersConfig {
        answers: Arc::new(Answers::new(&[served], false)?),
        log: Arc::new(Log::default()),
        addresses: AddressPlan::new(IpVersion::V4, [&page]),
        authority: None,
        cookies: Cookies::Cold,
        speaks_quic: false,
        early_data: EarlyRequests::None,
        keep_alive: false,
        priorities: Priorities::None,
        transport: Transport::default(),
        ecn: false,
        offload: Offload::Checksums,
        waiting: settings.waiting,
    })?;
    let (kernel, tasks) = servers.inside(move || {
        net::set_sysctl("tcp_syncookies", &settings.syn_cookies.to_string())?;
        Ok((Kernel::open()?, Tasks::this_thread()))
    })?;
    Ok(Server {
        tun,
        kernel,
        tasks,
        who: Who::Builtin(servers),
    })
}

/// A page of one object.
fn page(body_bytes: usize) -> Result<Page, LabError> {
    let document = serde_json::json!({
        "format": "firstflight-profile/1",
        "name": "object",
        "resources": [{
            "url": format!("http://{HOST}{TARGET}"), "kind": "document", "mime": "text/html",
            "request_bytes": 0, "header_bytes": 0, "body_bytes": body_bytes,
        }],
    });
    serde_json::from_value(document).map_err(|error| LabError::bug(format!("the object: {error}")))
}

fn program(argv: Vec<String>, settings: Settings) -> Result<Server, LabError> {
    scheduling::become_ordinary();
    net::set_server_sysctls(false)?;
    net::set_sysctl("tcp_syncookies", &settings.syn_cookies.to_string())?;
    net::set_sysctl("ip_unprivileged_port_start", "0")?;
    net::bring_loopback_up(Side::Servers, IpVersion::V4)?;
    let tun = Tun::open(
        Side::Servers,
        IpVersion::V4,
        Offload::Checksums,
        &Transport::default(),
    )?;
    let kernel = Kernel::open()?;
    let program = Program {
        argv,
        folder: Some(FOLDER.into()),
        ..Program::default()
    };
    let running = program.start(&Containment::None, Streams::Kept { input: "" })?;
    Ok(Server {
        tun,
        kernel,
        tasks: Tasks::program(running.id()),
        who: Who::Program(running),
    })
}

fn write_files(files: &BTreeMap<String, String>) -> Result<(), LabError> {
    let failed = |error| LabError::system("writing the server's files", error);
    fs::create_dir_all(FOLDER).map_err(failed)?;
    for (name, content) in files {
        fs::write(Path::new(FOLDER).join(name), content).map_err(failed)?;
    }
    Ok(())
}
