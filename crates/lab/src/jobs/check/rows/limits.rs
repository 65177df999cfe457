//! Limits of a server: off by default, too many pending requests, timeouts (RFC 7413, sections 4.2 and 5.1).

use std::thread;
use std::time::{Duration, Instant};

use super::{Level, Row, Trial};
use crate::jobs::check::finding::{Finding, Stop, yes};
use crate::jobs::check::packet::{Kind, Packet};
use crate::jobs::check::server::{OPEN, REQUEST, ServerStage, Settings};
use crate::jobs::check::wire::{SILENCE, SOON};
use crate::packet::fast_open;
use crate::witness::Counters;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "R8-data",
        level: Level::Should,
        section: "4.2.2",
        behaviour: "A SYN-ACK that took data and was not acknowledged goes again without data and option.",
        done: "A SYN with a good cookie and data; no ACK.",
        trial: Trial::Server {
            settings: OPEN,
            run: data_timeout,
        },
    },
    Row {
        id: "R8-cookie",
        level: Level::Should,
        section: "4.2.1",
        behaviour: "A SYN-ACK that gave a cookie and was not acknowledged goes again without the option.",
        done: "A SYN that asks for a cookie; no ACK.",
        trial: Trial::Server {
            settings: OPEN,
            run: cookie_timeout,
        },
    },
    Row {
        id: "R9-sysctl",
        level: Level::Must,
        section: "4.2",
        behaviour: "Server Fast Open is off by default, and then options are ignored.",
        done: "A listener that asks for Fast Open, with the kernel's default tcp_fastopen: a SYN that asks \
            for a cookie.",
        trial: Trial::Server {
            settings: Settings {
                sysctl: None,
                own: true,
                ..OPEN
            },
            run: off,
        },
    },
    Row {
        id: "R9-socket",
        level: Level::Must,
        section: "4.2",
        behaviour: "The application has to turn server Fast Open on; till then options are ignored.",
        done: "tcp_fastopen 3, but a listener that does not ask for Fast Open: a SYN that asks for a cookie.",
        trial: Trial::Server {
            settings: Settings {
                pending: None,
                own: true,
                ..OPEN
            },
            run: off,
        },
    },
    Row {
        id: "R10-limit",
        level: Level::Must,
        section: "4.2",
        behaviour: "Above its limit of pending requests a server does no Fast Open for new ones, and does \
            again once below.",
        done: "SYNs with a good cookie and data, none acknowledged, until one is refused; then the ACK of \
            the first, and one more.",
        trial: Trial::Server {
            settings: Settings {
                pending: Some(3),
                ..OPEN
            },
            run: limit,
        },
    },
    Row {
        id: "R11-accepted",
        level: Level::Described,
        section: "5.1",
        behaviour: "Requests that were reset count as pending for some time: here those that the \
            application had accepted.",
        done: "A limit of 2; two SYNs with data, answered, then reset; a third.",
        trial: Trial::Server {
            settings: Settings {
                pending: Some(2),
                own: true,
                ..OPEN
            },
            run: reset_after_accept,
        },
    },
    Row {
        id: "R11-waiting",
        level: Level::Described,
        section: "5.1",
        behaviour: "Requests that were reset count as pending for some time: here those that the \
            application had not accepted yet.",
        done: "A limit of 2; an application that does not accept; two SYNs with data, then reset; a third.",
        trial: Trial::Server {
            settings: Settings {
                pending: Some(2),
                accepts: false,
                own: true,
                ..OPEN
            },
            run: reset_before_accept,
        },
    },
    Row {
        id: "listener-closed",
        level: Level::Linux,
        section: "",
        behaviour: "When a listener is closed, clients with a pending request are told so.",
        done: "A SYN with data to an application that does not accept; the listener is closed; the ACK.",
        trial: Trial::Server {
            settings: Settings {
                accepts: false,
                own: true,
                ..OPEN
            },
            run: listener_closed,
        },
    },
];

/// The initial timeout is 1 s (RFC 6298, section 2.1).
const RETRANSMISSION: Duration = Duration::from_secs(4);
/// More pending requests than a test allows; some thousand connections take a second.
const MANY: usize = 1_100;

fn data_timeout(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
    if syn_ack.takes_of(&syn) == Some(0) {
        return Ok(Finding::judged(false, "The SYN-ACK does not take the data."));
    }
    sent_again(stage, &syn)
}

fn cookie_timeout(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let (syn, syn_ack) = stage.open(&fast_open(&[]), &[])?;
    if syn_ack.cookie().is_none() {
        return Err(Stop::NotApplicable(
            "The server gives no cookie: Fast Open is off.".to_owned(),
        ));
    }
    sent_again(stage, &syn)
}

fn sent_again(stage: &mut ServerStage, syn: &Packet) -> Result<Finding, Stop> {
    let client = syn.source;
    let again = stage
        .wire
        .expect("SYN-ACK sent again", RETRANSMISSION, |packet| {
            packet.destination == client && packet.kind() == Kind::SynAck
        })?;
    let bare = again.cookie().is_none() && again.experimental_cookie().is_none();
    let seen = format!(
        "The SYN-ACK went again with {} bytes of data; it has an option: {}.",
        again.payload.len(),
        yes(!bare)
    );
    Ok(Finding::judged(bare && again.payload.is_empty(), seen))
}

fn off(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let (syn, syn_ack) = stage.open(&fast_open(&[]), REQUEST)?;
    let taken = syn_ack.takes_of(&syn) != Some(0);
    let seen = format!(
        "The SYN-ACK has a cookie: {}; it takes data: {}.",
        yes(syn_ack.cookie().is_some()),
        yes(taken)
    );
    Ok(Finding::judged(syn_ack.cookie().is_none() && !taken, seen))
}

fn limit(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let before = Counters::read()?;
    let mut taken = Vec::new();
    let refused = loop {
        let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
        if syn_ack.takes_of(&syn) == Some(0) {
            break syn_ack;
        }
        taken.push((syn, syn_ack));
        if taken.len() == MANY {
            return Err(Stop::NotApplicable(format!(
                "None of {MANY} pending requests was refused."
            )));
        }
    };
    let overflow = Counters::read()?.since(before).listen_overflow;
    let Some((first, first_answer)) = taken.first() else {
        return Ok(Finding::judged(false, "The very first was refused."));
    };
    stage.ack(first, &first_answer.clone(), &[])?;
    // The kernel delays the ACK if the application holds the connection's lock at that moment.
    let deadline = Instant::now() + SOON;
    let again = loop {
        let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
        let is_taken = syn_ack.takes_of(&syn) == Some(REQUEST.len() as u32);
        if is_taken || Instant::now() >= deadline {
            break is_taken;
        }
        thread::sleep(SILENCE);
    };
    let seen = format!(
        "{} were taken, the next refused with a plain SYN-ACK (option in it: {}); after an ACK one more \
         was taken: {}; \
         TCPFastOpenListenOverflow {overflow}.",
        taken.len(),
        yes(refused.cookie().is_some()),
        yes(again),
    );
    Ok(Finding::judged(again && overflow == 1, seen))
}

fn reset_after_accept(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    for _ in 0..2 {
        let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
        // The server answers once it has accepted the connection.
        let answer = stage.wire.expect("answer before the ACK", SOON, |packet| {
            packet.destination == syn.source && !packet.payload.is_empty()
        })?;
        stage.reset(&syn_ack)?;
        drop(answer);
        stage.wire.drain(Duration::from_millis(50));
    }
    third(stage, &ticket)
}

fn reset_before_accept(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    for _ in 0..2 {
        let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
        if syn_ack.takes_of(&syn) == Some(0) {
            return Ok(Finding::judged(false, "Refused below the limit."));
        }
        stage.reset(&syn_ack)?;
        stage.wire.drain(Duration::from_millis(50));
    }
    third(stage, &ticket)
}

/// Whether two requests that were reset still count as pending.
fn third(stage: &mut ServerStage, ticket: &[u8]) -> Result<Finding, Stop> {
    let (syn, syn_ack) = stage.open(ticket, REQUEST)?;
    let counted = syn_ack.takes_of(&syn) == Some(0);
    let seen = if counted {
        "The third was refused: the two that were reset still counted."
    } else {
        "The third was taken: the two that were reset no longer counted."
    };
    Ok(Finding::judged(counted, seen))
}

fn listener_closed(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
    stage.own()?.close();
    let at_once = stage
        .next_to(&syn, SILENCE)
        .is_some_and(|packet| packet.flags.rst);
    let told = at_once || {
        stage.ack(&syn, &syn_ack, &[])?;
        stage.next_to(&syn, SOON).is_some_and(|packet| packet.flags.rst)
    };
    let seen = match (at_once, told) {
        (true, _) => "A RST came when the listener was closed.",
        (false, true) => "A RST came in answer to the ACK.",
        (false, false) => "No RST came.",
    };
    Ok(Finding::judged(told, seen))
}
