//! The stage of rows of a pair: this kernel's client and server, with a relay and a middlebox between them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use firstflight_path::{IpVersion, Middlebox, MiddleboxKind, PathConfig};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::app::App;
use super::client::{REQUEST, SERVER, send_in_syn};
use super::wire::open_network;
use crate::net::{self, Side};
use crate::relay::{Keep, Relay, RelayReport, Timing, Wire};
use crate::tun::Tun;
use crate::{LabError, namespace, scheduling};

/// Round-trip time between the two, ms.
pub(super) const RTT_MS: f64 = 100.0;

const PENDING: u32 = 64;
/// Timeout of an answer: a SYN is sent again after 1 s (RFC 6298, section 2.1).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Both kernels; the client's has a cookie.
pub(super) struct PairStage {
    server: SocketAddr,
    relay: Relay,
    pub(super) app: App,
    /// Connections stay open, because closing them would add packets to the capture.
    kept: Vec<TcpStream>,
}

impl PairStage {
    /// Sets up both network namespaces. The client gets a cookie before the middlebox is active.
    pub(super) fn build(
        ip: IpVersion,
        middlebox: Option<MiddleboxKind>,
        realtime: bool,
    ) -> Result<Self, LabError> {
        let client = open_network(Side::Client, ip)?;
        let start = move || serve(ip).map(|started| (started, ()));
        // The namespace lives as long as the listener.
        let (servers, app) = namespace::in_new_network("server", start, |()| {})?;
        let wire = Wire::of_one_host(ip, client, servers);
        let path = PathConfig {
            rtt_ms: RTT_MS,
            middlebox: middlebox.map(|kind| Middlebox { kind, share: 1.0 }),
            ..PathConfig::default()
        };
        let keep = Keep {
            packets: true,
            times: false,
        };
        let mut stage = Self {
            server: SERVER.address(ip),
            relay: Relay::start(wire, &path, keep, Timing::default(), realtime)?,
            app,
            kept: Vec::new(),
        };
        // The relay has inherited the priority. The client must not compete with it.
        scheduling::step_back();
        stage.exchange()?;
        stage.relay.shape();
        Ok(stage)
    }

    /// Sends a request with Fast Open. Returns the time to the answer, ms; `None` if no answer came.
    pub(super) fn exchange(&mut self) -> Result<Option<f64>, LabError> {
        let begun = Instant::now();
        let (socket, accepted) = send_in_syn(self.server, REQUEST)?;
        let stream = TcpStream::from(socket);
        // An error of the connection also means that no answer came.
        let is_answered = converse(&stream, &REQUEST[accepted..], begun + ANSWER_TIMEOUT).unwrap_or(false);
        self.kept.push(stream);
        Ok(is_answered.then(|| begun.elapsed().as_secs_f64() * 1e3))
    }

    /// Ends the relay and returns its report.
    pub(super) fn finish(self) -> Result<RelayReport, LabError> {
        self.relay.finish()
    }
}

/// Sends the rest of a request once the connection is established. Returns whether an answer came in time.
pub(super) fn converse(mut stream: &TcpStream, mut left: &[u8], deadline: Instant) -> io::Result<bool> {
    loop {
        let time_left = deadline.saturating_duration_since(Instant::now());
        let events = if left.is_empty() {
            PollFlags::POLLIN
        } else {
            PollFlags::POLLOUT
        };
        let timeout = PollTimeout::try_from(time_left).unwrap_or(PollTimeout::MAX);
        if poll(&mut [PollFd::new(stream.as_fd(), events)], timeout)? == 0 {
            return Ok(false);
        }
        if !left.is_empty() {
            stream.write_all(left)?;
            left = &[];
            continue;
        }
        match stream.read(&mut [0; 512]) {
            Ok(length) => return Ok(length > 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// The server's end of the wire, and the server, in its network namespace.
fn serve(ip: IpVersion) -> Result<(Tun, App), LabError> {
    scheduling::step_back();
    net::set_sysctl("tcp_fastopen", "3")?;
    let tun = open_network(Side::Servers, ip)?;
    Ok((tun, App::listen(SERVER.address(ip), Some(PENDING), true)?))
}
