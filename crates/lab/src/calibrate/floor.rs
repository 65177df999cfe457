//! What this machine adds by itself: the same probes over a plain veth pair, with no relay between, or over
//! two TUN devices and a loop that does nothing but hand packets on, which no relay can undercut.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use serde::Deserialize;

use super::{Probes, RoundTrips};
use crate::net::{self, Offload, Side, Transport, Tun, VNET_HEADER_BYTES};
use crate::origin::ECHO_PORT;
use crate::{LabError, scheduling};

const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const RETRY: Duration = Duration::from_millis(50);
const RETRIES: usize = 100;
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// A wire without a relay, and the probes that cross it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Floor {
    /// The probes.
    #[serde(flatten)]
    pub probes: Probes,
    /// The wire.
    #[serde(default)]
    pub over: Over,
}

/// What lies between two namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// A veth pair.
    #[default]
    Veth,
    /// Two TUN devices and a loop.
    Tun,
}

impl Floor {
    /// Reads what is to be measured.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        serde_json::from_str(text)
            .map_err(|error| LabError::new(format!("the probes: {error}"), "send one line of JSON"))
    }

    /// Measures round trips between this namespace and another. Call inside a sandbox.
    ///
    /// # Errors
    /// [`LabError`] when the kernel refuses the wire or the echo does not answer.
    pub fn measure(self) -> Result<RoundTrips, LabError> {
        // The relay's priority has no use here.
        scheduling::step_back();
        match self.over {
            Over::Veth => over_veth(self.probes),
            Over::Tun => over_tun(self.probes),
        }
    }
}

fn over_tun(probes: Probes) -> Result<RoundTrips, LabError> {
    let transport = Transport::default();
    let client = Tun::open(Side::Client, Offload::None, &transport)?;
    let (ready, started) = mpsc::channel();
    std::thread::Builder::new()
        .name("servers".to_owned())
        .spawn(move || {
            let servers = unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|errno| LabError::system("making a network namespace", errno))
                .and_then(|()| Tun::open(Side::Servers, Offload::None, &Transport::default()))
                .and_then(|tun| Ok((tun, UdpSocket::bind((FAR, ECHO_PORT)).map_err(no_echo)?)));
            match servers {
                Ok((tun, socket)) => {
                    let _ = ready.send(Ok(tun));
                    answer_all(socket);
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        })
        .map_err(no_echo)?;
    let servers = started.recv().map_err(|_| dead())??;
    std::thread::Builder::new()
        .name("loop".to_owned())
        .spawn(move || hand_on(&client, &servers))
        .map_err(|error| LabError::system("starting the loop", error))?;
    send(probes)
}

/// Hands packets on, both ways, as soon as they come.
fn hand_on(client: &Tun, servers: &Tun) {
    let mut packet = vec![0; Offload::None.largest_packet() + VNET_HEADER_BYTES];
    loop {
        let mut fds = [client, servers].map(|tun| PollFd::new(tun.file().as_fd(), PollFlags::POLLIN));
        if poll(&mut fds, PollTimeout::NONE).is_err() {
            continue;
        }
        for (from, to) in [(client, servers), (servers, client)] {
            while let Ok(length) = from.file().read(&mut packet) {
                // One that the kernel does not take is a probe that does not come back.
                let _ = to.file().write(&packet[..length]);
            }
        }
    }
}

fn over_veth(probes: Probes) -> Result<RoundTrips, LabError> {
    let (ready, started) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    std::thread::Builder::new()
        .name("servers".to_owned())
        .spawn(move || echo(&ready, &gone))
        .map_err(no_echo)?;
    let namespace = started.recv().map_err(|_| dead())??;
    net::make_veth_pair(namespace.as_fd())?;
    net::bring_veth_up(NEAR)?;
    go.send(()).map_err(|_| dead())?;
    started.recv().map_err(|_| dead())??;
    send(probes)
}

fn dead() -> LabError {
    LabError::new("the echo service died", "please report this as a bug")
}

fn no_echo(error: std::io::Error) -> LabError {
    LabError::system("starting the echo service", error)
}

fn send(probes: Probes) -> Result<RoundTrips, LabError> {
    wait_for_echo().map_err(|error| LabError::system("waiting for the echo service", error))?;
    probes
        .send((NEAR, 0), (FAR, ECHO_PORT), 0.0)
        .map_err(|error| LabError::system("measuring the floor", error))
}

/// The pair carries nothing until the kernel has noticed that both ends are up.
fn wait_for_echo() -> std::io::Result<()> {
    let socket = UdpSocket::bind((NEAR, 0))?;
    socket.connect((FAR, ECHO_PORT))?;
    socket.set_read_timeout(Some(RETRY))?;
    for _ in 0..RETRIES {
        socket.send(b"?")?;
        if socket.recv(&mut [0; 8]).is_ok() {
            return Ok(());
        }
    }
    Err(std::io::ErrorKind::TimedOut.into())
}

type Answer = Result<std::fs::File, LabError>;

/// The far end: a namespace of its own with an echo service like the lab's, on an async runtime.
fn echo(ready: &mpsc::Sender<Answer>, go: &mpsc::Receiver<()>) {
    let namespace = unshare(CloneFlags::CLONE_NEWNET)
        .map_err(std::io::Error::from)
        .and_then(|()| std::fs::File::open("/proc/thread-self/ns/net"));
    let _ = ready.send(namespace.map_err(|error| LabError::system("making a network namespace", error)));
    if go.recv().is_err() {
        return;
    }
    let socket = net::bring_veth_up(FAR).and_then(|()| UdpSocket::bind((FAR, ECHO_PORT)).map_err(no_echo));
    let socket = match socket {
        Ok(socket) => socket,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let null = std::fs::File::open("/dev/null").map_err(|error| LabError::system("opening /dev/null", error));
    let _ = ready.send(null);
    answer_all(socket);
}

/// An echo service like the lab's, on an async runtime. Without one no probe comes back, which is an error.
fn answer_all(socket: UdpSocket) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    runtime.block_on(async {
        let Ok(socket) = tokio::net::UdpSocket::from_std(socket) else {
            return;
        };
        let mut datagram = vec![0; 65_536];
        loop {
            if let Ok((length, from)) = socket.recv_from(&mut datagram).await {
                let _ = socket.send_to(&datagram[..length], from).await;
            }
        }
    });
}
