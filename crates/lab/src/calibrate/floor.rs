//! What this machine adds by itself: the same probes over a plain veth pair, with no relay between.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};

use super::{Probes, RoundTrips};
use crate::net;
use crate::origin::ECHO_PORT;
use crate::{LabError, scheduling};

const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const RETRY: Duration = Duration::from_millis(50);
const RETRIES: usize = 100;
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// Measures round trips over a veth pair between this namespace and another. Call inside a sandbox.
///
/// # Errors
/// [`LabError`] when the kernel refuses the pair or the echo does not answer.
pub fn floor(probes: Probes) -> Result<RoundTrips, LabError> {
    // The relay's priority has no use here.
    scheduling::step_back();
    let (ready, started) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    std::thread::Builder::new()
        .name("servers".to_owned())
        .spawn(move || echo(&ready, &gone))
        .map_err(|error| LabError::system("starting the echo service", error))?;
    let dead = || LabError::new("the echo service died", "please report this as a bug");
    let namespace = started.recv().map_err(|_| dead())??;
    net::make_veth_pair(namespace.as_fd())?;
    net::bring_veth_up(NEAR)?;
    go.send(()).map_err(|_| dead())?;
    started.recv().map_err(|_| dead())??;
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let socket = net::bring_veth_up(FAR).and_then(|()| {
        UdpSocket::bind((FAR, ECHO_PORT))
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .map_err(|error| LabError::system("starting the echo service", error))
    });
    let failed = |error| LabError::system("starting a runtime", error);
    let (runtime, socket) = match (runtime.map_err(failed), socket) {
        (Ok(runtime), Ok(socket)) => (runtime, socket),
        (Err(error), _) | (_, Err(error)) => return drop(ready.send(Err(error))),
    };
    let null = std::fs::File::open("/dev/null").map_err(|error| LabError::system("opening /dev/null", error));
    let _ = ready.send(null);
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
