//! The stage of server rows: a server on this kernel, built-in or the user's, and a script in place of all its
//! clients.

use std::net::SocketAddr;
use std::time::Duration;

use super::app::App;
use super::client::SERVER;
use super::finding::Stop;
use super::packet::{Kind, Packet};
use super::program::{NamedServer, quoted};
use super::wire::{SOON, Wire};
use crate::LabError;
use crate::net::{self, Block, Side};
use crate::packet;
use crate::program::Running;
use firstflight_path::IpVersion;

/// The client of most rows, and one with another address, as numbers in the client's network.
pub(super) const CLIENT: u16 = 8;
pub(super) const OTHER_CLIENT: u16 = 76;
/// A request.
pub(super) const REQUEST: &[u8] = b"GET / HTTP/1.0\r\nHost: www.example.org\r\n\r\n";

/// The server that a row needs. Some settings only concern the built-in server: a user's program cannot be changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// `net.ipv4.tcp_fastopen` of the namespace; `None` for the kernel's default.
    pub(super) sysctl: Option<&'static str>,
    /// Pending Fast Open requests that the built-in server allows; `None` for no Fast Open.
    pub(super) pending: Option<u32>,
    /// Whether the built-in server accepts connections from the start.
    pub(super) accepts: bool,
    /// Whether the row needs the built-in server.
    pub(super) own: bool,
}

/// Fast Open is on, and all connections are accepted.
pub(super) const OPEN: Settings = Settings {
    sysctl: Some("3"),
    pending: Some(64),
    accepts: true,
    own: false,
};

/// A server, and its wire.
pub(super) struct ServerStage {
    pub(super) wire: Wire,
    /// The server's address.
    pub(super) server: SocketAddr,
    /// The built-in server; `None` if it is the user's.
    pub(super) app: Option<App>,
    /// Ends with the stage.
    running: Option<Running>,
    next_port: u16,
}

impl ServerStage {
    /// Sets up this network namespace and starts the server in it.
    pub(super) fn build(
        ip: IpVersion,
        settings: &Settings,
        named: Option<&NamedServer>,
    ) -> Result<Self, LabError> {
        if let Some(value) = settings.sysctl {
            net::set_sysctl("tcp_fastopen", value)?;
        }
        let wire = Wire::open(Side::Servers, ip)?;
        let ours = SERVER.address(ip);
        let (app, running, port) = if let Some(named) = named {
            (None, Some(named.start(ip)?), named.port)
        } else {
            let app = App::listen(ours, settings.pending, settings.accepts)?;
            (Some(app), None, ours.port())
        };
        Ok(Self {
            wire,
            server: SocketAddr::new(ours.ip(), port),
            app,
            running,
            next_port: 40_000,
        })
    }

    /// The built-in server.
    pub(super) fn own(&mut self) -> Result<&mut App, Stop> {
        let missing =
            || Stop::NotApplicable("It takes a hand in the server, which only ours offers.".to_owned());
        self.app.as_mut().ok_or_else(missing)
    }

    /// A SYN from the client, from a new port.
    pub(super) fn syn(&mut self, options: &[u8], data: &[u8]) -> Result<Packet, LabError> {
        self.syn_from(CLIENT, options, data)
    }

    /// A SYN from the client with this number.
    pub(super) fn syn_from(&mut self, client: u16, options: &[u8], data: &[u8]) -> Result<Packet, LabError> {
        self.next_port += 1;
        let address = Block::of(self.wire.ip()).neighbour(client);
        let source = SocketAddr::new(address, self.next_port);
        let options = [&packet::mss(self.segment_bytes()), options].concat();
        let syn = Packet::syn(
            source,
            self.server,
            u32::from(self.next_port) << 12,
            &options,
            data,
        );
        self.wire.send(&syn)?;
        Ok(syn)
    }

    /// The segment size that the script's clients announce: what fits into a packet of 1,500 bytes.
    pub(super) fn segment_bytes(&self) -> u16 {
        1_480 - self.wire.ip().header_bytes() as u16
    }

    /// The server's answer to a SYN.
    pub(super) fn syn_ack(&mut self, syn: &Packet) -> Result<Packet, LabError> {
        let client = syn.source;
        self.wire.expect("SYN-ACK", SOON, |packet| {
            packet.destination == client && packet.kind() == Kind::SynAck
        })
    }

    /// Sends a SYN. Returns it with its answer.
    pub(super) fn open(&mut self, options: &[u8], data: &[u8]) -> Result<(Packet, Packet), LabError> {
        let syn = self.syn(options, data)?;
        let syn_ack = self.syn_ack(&syn)?;
        Ok((syn, syn_ack))
    }

    /// The next segment to this SYN's client.
    pub(super) fn next_to(&mut self, syn: &Packet, timeout: Duration) -> Option<Packet> {
        let client = syn.source;
        self.wire.wait(timeout, |packet| packet.destination == client)
    }

    /// The next data to this SYN's client.
    pub(super) fn data_to(&mut self, syn: &Packet, timeout: Duration) -> Option<Packet> {
        let client = syn.source;
        self.wire.wait(timeout, |packet| {
            packet.destination == client && !packet.flags.syn && !packet.payload.is_empty()
        })
    }

    /// The client's acknowledgment of everything up to `seen`, with `data`.
    pub(super) fn ack(&mut self, syn: &Packet, seen: &Packet, data: &[u8]) -> Result<Packet, LabError> {
        // Data continues where the server's acknowledgment stopped, so SYN data that it refused is sent again.
        let next = seen.acknowledgment;
        let mut ack = seen.reply(next, seen.end());
        ack.source = syn.source;
        ack.payload = data.to_vec();
        self.wire.send(&ack)?;
        Ok(ack)
    }

    /// The client resets the connection.
    pub(super) fn reset(&mut self, seen: &Packet) -> Result<(), LabError> {
        let mut reset = seen.reply(seen.acknowledgment, seen.end());
        reset.flags.rst = true;
        self.wire.send(&reset)
    }

    /// The server's answer to a cookie request: the cookie, or `None`. Then the connection is reset.
    pub(super) fn ask_for_cookie(&mut self, client: u16) -> Result<Option<Vec<u8>>, LabError> {
        let syn = self.syn_from(client, &packet::fast_open(&[]), &[])?;
        let syn_ack = self.syn_ack(&syn)?;
        self.reset(&syn_ack)?;
        Ok(syn_ack.cookie().map(<[u8]>::to_vec))
    }

    /// A cookie of the server for the client. Without one the row does not apply.
    pub(super) fn cookie(&mut self) -> Result<Vec<u8>, Stop> {
        let given = self.ask_for_cookie(CLIENT)?;
        given.ok_or_else(|| Stop::NotApplicable("The server gives no cookie: Fast Open is off.".to_owned()))
    }

    /// The Fast Open option with a cookie of the server.
    pub(super) fn ticket(&mut self) -> Result<Vec<u8>, Stop> {
        self.cookie().map(|cookie| packet::fast_open(&cookie))
    }

    /// What the user's server has printed so far, to append to a message.
    pub(super) fn said(&self) -> String {
        self.running.as_ref().map(quoted).unwrap_or_default()
    }
}
