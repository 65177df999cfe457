//! Round trips that this machine adds without a relay: the same probes over a plain veth pair, or over two TUN
//! devices and a loop that only forwards packets. No relay can be faster than the latter.

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Deserialize;
use tokio::runtime::Runtime;

use super::{Probes, RoundTrips};
use crate::net::{self, Side, Transport};
use crate::origin::ECHO_PORT;
use crate::tun::{Frame, Offload, Tun};
use crate::{LabError, namespace, scheduling};
use firstflight_path::IpVersion;

const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const RETRY: Duration = Duration::from_millis(50);
const RETRIES: usize = 100;
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// A measurement without a relay.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Floor {
    /// The probes.
    #[serde(flatten)]
    pub probes: Probes,
    /// The wire.
    #[serde(default)]
    pub over: Over,
}

/// The connection between two namespaces.
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
    /// Reads the job.
    ///
    /// # Errors
    /// [`LabError`] naming what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, LabError> {
        let floor: Self =
            serde_json::from_str(text).map_err(|error| LabError::malformed("the probes", error))?;
        floor.probes.check()?;
        Ok(floor)
    }

    /// Measures round trips between this namespace and another. Call inside a lab.
    ///
    /// # Errors
    /// [`LabError`] when the kernel refuses the wire or the echo does not answer.
    pub fn measure(self) -> Result<RoundTrips, LabError> {
        // Without a relay, its priority is not needed.
        scheduling::step_back();
        match self.over {
            Over::Veth => over_veth(self.probes),
            Over::Tun => over_tun(self.probes),
        }
    }
}

fn over_tun(probes: Probes) -> Result<RoundTrips, LabError> {
    let client = Tun::open(Side::Client, IpVersion::V4, Offload::None, &Transport::default())?;
    let far_end = || {
        let tun = Tun::open(Side::Servers, IpVersion::V4, Offload::None, &Transport::default())?;
        Ok((tun, Echo::start()?))
    };
    let servers = namespace::in_new_network("servers", far_end, Echo::answer_all)?;
    std::thread::Builder::new()
        .name("loop".to_owned())
        .spawn(move || hand_on(&client, &servers))
        .map_err(|error| LabError::system("starting the loop", error))?;
    send(probes)
}

/// Forwards packets both ways as soon as they come.
fn hand_on(client: &Tun, servers: &Tun) {
    let mut frame = Frame::with_room(Offload::None.largest_packet());
    loop {
        let mut fds = [client, servers].map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN));
        if poll(&mut fds, PollTimeout::NONE).is_err() {
            continue;
        }
        for (from, to) in [(client, servers), (servers, client)] {
            while from.read(&mut frame) {
                // A packet that the kernel refuses is a lost probe.
                let _ = to.write(&frame);
            }
        }
    }
}

fn over_veth(probes: Probes) -> Result<RoundTrips, LabError> {
    let near_end = File::open("/proc/thread-self/ns/net")
        .map_err(|error| LabError::system("opening the network namespace", error))?;
    let far_end = move || {
        net::make_veth_pair(near_end.as_fd())?;
        net::bring_veth_up(FAR)?;
        Ok(((), Echo::start()?))
    };
    namespace::in_new_network("servers", far_end, Echo::answer_all)?;
    net::bring_veth_up(NEAR)?;
    send(probes)
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

/// An echo service like the lab's, on an async runtime.
struct Echo {
    runtime: Runtime,
    socket: UdpSocket,
}

impl Echo {
    /// Opens it at the server's end, in the calling thread's network namespace.
    fn start() -> Result<Self, LabError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let started = runtime.and_then(|runtime| {
            let socket = UdpSocket::bind((FAR, ECHO_PORT))?;
            socket.set_nonblocking(true)?;
            Ok(Self { runtime, socket })
        });
        started.map_err(|error| LabError::system("starting the echo service", error))
    }

    /// If it fails no probe comes back, which is an error.
    fn answer_all(self) {
        self.runtime.block_on(async {
            let Ok(socket) = tokio::net::UdpSocket::from_std(self.socket) else {
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
}
