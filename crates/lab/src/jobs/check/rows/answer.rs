//! How a server answers a SYN (RFC 7413, section 4.2.2).

use super::{Level, Row, Trial};
use crate::jobs::check::finding::{Finding, Stop, yes};
use crate::jobs::check::packet::Packet;
use crate::jobs::check::server::{OPEN, REQUEST, ServerStage, Settings};
use crate::jobs::check::wire::{SILENCE, SOON};
use crate::packet::{experimental_fast_open, fast_open};
use crate::witness::Counters;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "R12-invalid",
        level: Level::Described,
        section: "4.2.2",
        behaviour: "A server drops the data of a SYN whose cookie is invalid, acknowledges the SYN alone, \
            and gives a good cookie.",
        done: "A SYN with data and a cookie of which one bit is wrong; the data again with the ACK.",
        trial: Trial::Server {
            settings: OPEN,
            run: invalid,
        },
    },
    Row {
        id: "R14-early",
        level: Level::May,
        section: "4.2.2",
        behaviour: "A server acknowledges the data of a SYN with a good cookie and answers before the \
            handshake ends.",
        done: "A SYN with a request and a good cookie; no ACK.",
        trial: Trial::Server {
            settings: OPEN,
            run: early,
        },
    },
    Row {
        id: "R14-window",
        level: Level::Must,
        section: "4.2.2",
        behaviour: "Before the handshake ends a server sends no more than its initial window, as after an \
            ordinary one.",
        done: "A request for 100 kB in a SYN with a good cookie, and in an ordinary connection; no ACK of \
            any data.",
        trial: Trial::Server {
            settings: Settings { own: true, ..OPEN },
            run: window,
        },
    },
    Row {
        id: "R16-duplicate",
        level: Level::Described,
        section: "2.1",
        behaviour: "A SYN with data that comes twice while its connection lives is served once.",
        done: "The same SYN with a good cookie and a request twice, one after the other.",
        trial: Trial::Server {
            settings: OPEN,
            run: duplicate,
        },
    },
    Row {
        id: "R16-replay",
        level: Level::MustNot,
        section: "2.1",
        behaviour: "Applications that cannot take a request twice must not use Fast Open.",
        done: "The same SYN with a good cookie and a request again, after its connection was reset.",
        trial: Trial::Server {
            settings: OPEN,
            run: replay,
        },
    },
    Row {
        id: "experimental-server",
        level: Level::Linux,
        section: "",
        behaviour: "A server takes the experimental option (254, 0xF989) as well, and answers in kind.",
        done: "A SYN that asks for a cookie with it; then one with that cookie and a request.",
        trial: Trial::Server {
            settings: OPEN,
            run: experimental,
        },
    },
    Row {
        id: "syn-data-no-option",
        level: Level::Linux,
        section: "",
        behaviour: "Data in a SYN without option is not taken: a plain SYN-ACK answers.",
        done: "A SYN with a request and no option; the request again with the ACK.",
        trial: Trial::Server {
            settings: OPEN,
            run: no_option,
        },
    },
    Row {
        id: "zero-payload-server",
        level: Level::Linux,
        section: "",
        behaviour: "A SYN with a good cookie and no data opens a connection like any other.",
        done: "Such a SYN; then a request with the ACK.",
        trial: Trial::Server {
            settings: OPEN,
            run: zero_payload,
        },
    },
];

fn invalid(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let good = stage.cookie()?;
    let mut bad = good.clone();
    bad[0] ^= 1;
    let before = Counters::read()?;
    let (syn, syn_ack) = stage.open(&fast_open(&bad), REQUEST)?;
    let early = stage.data_to(&syn, SILENCE).is_some();
    stage.ack(&syn, &syn_ack, REQUEST)?;
    let answered = stage.data_to(&syn, SOON).is_some();
    let counters = Counters::read()?.since(before);
    let renewed = syn_ack.cookie() == Some(&good);
    let refused = syn_ack.takes_of(&syn) == Some(0) && !early;
    let seen = format!(
        "Data acknowledged by the SYN-ACK: {}; answered before the ACK: {}; good cookie in the SYN-ACK: \
         {}; answered \
         after the ACK: {}; TCPFastOpenPassive {}, PassiveFail {}.",
        yes(syn_ack.takes_of(&syn) != Some(0)),
        yes(early),
        yes(renewed),
        yes(answered),
        counters.passive,
        counters.passive_fail,
    );
    Ok(Finding::judged(
        refused && renewed && answered && counters.passive == 0,
        seen,
    ))
}

fn early(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let before = Counters::read()?;
    let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
    let answer = stage.data_to(&syn, SOON);
    let passive = Counters::read()?.since(before).passive;
    let taken = syn_ack.takes_of(&syn) == Some(REQUEST.len() as u32);
    let heard = stage.app.as_ref().and_then(|app| app.heard().pop());
    let socket = heard.map_or_else(String::new, |heard| {
        format!("; TCP_INFO: SYN data taken {}", yes(heard.in_syn))
    });
    let seen = format!(
        "The SYN-ACK acknowledges the data: {}; bytes answered before any ACK: {}; TCPFastOpenPassive \
         {passive}{socket}.",
        yes(taken),
        answer.as_ref().map_or(0, |packet| packet.payload.len()),
    );
    let agree = passive == 1 && heard.is_none_or(|heard| heard.in_syn);
    Ok(Finding::judged(taken && answer.is_some() && agree, seen))
}

fn window(stage: &mut ServerStage) -> Result<Finding, Stop> {
    const LARGE: &[u8] = b"GET /large HTTP/1.0\r\n\r\n";
    let ticket = stage.ticket()?;
    let (syn, _) = stage.open(&ticket, LARGE)?;
    let early = answered_bytes(stage, &syn);
    let (syn, syn_ack) = stage.open(&[], &[])?;
    stage.ack(&syn, &syn_ack, LARGE)?;
    let ordinary = answered_bytes(stage, &syn);
    let segment = usize::from(stage.segment_bytes());
    let seen = format!(
        "{early} bytes before the handshake ended, {ordinary} after an ordinary one; segments of {segment} \
         bytes: {} and {}.",
        early.div_ceil(segment),
        ordinary.div_ceil(segment),
    );
    Ok(Finding::judged(early > 0 && early <= ordinary, seen))
}

/// Bytes that a server sends to a client that acknowledges none of them. Retransmitted bytes count once.
fn answered_bytes(stage: &mut ServerStage, syn: &Packet) -> usize {
    stage.data_to(syn, SOON);
    stage.wire.drain(SILENCE);
    let to_client = |packet: &&Packet| packet.destination == syn.source;
    let first = stage
        .wire
        .kernels()
        .filter(to_client)
        .find(|packet| packet.flags.syn);
    let Some(first) = first.map(|packet| packet.sequence.wrapping_add(1)) else {
        return 0;
    };
    let data = stage
        .wire
        .kernels()
        .filter(to_client)
        .filter(|packet| !packet.payload.is_empty());
    data.map(|packet| packet.end().wrapping_sub(first) as usize)
        .max()
        .unwrap_or_default()
}

fn duplicate(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let before = Counters::read()?;
    let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
    if syn_ack.takes_of(&syn) == Some(0) {
        return Ok(Finding::judged(false, "The SYN-ACK does not take the data."));
    }
    stage.wire.send(&syn)?;
    let once = answered_bytes(stage, &syn);
    let taken = Counters::read()?.since(before).passive;
    let heard = stage.app.as_ref().map(|app| app.heard().len());
    let told = heard.map_or_else(String::new, |times| {
        let noun = if times == 1 { "time" } else { "times" };
        format!("; the application heard it {times} {noun}")
    });
    let seen = format!("TCPFastOpenPassive {taken}; {once} bytes were answered{told}.");
    Ok(Finding::judged(
        taken == 1 && heard.is_none_or(|times| times == 1),
        seen,
    ))
}

fn replay(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let (syn, syn_ack) = stage.open(&ticket, REQUEST)?;
    let first = stage.data_to(&syn, SOON).is_some();
    stage.reset(&syn_ack)?;
    stage.wire.drain(SILENCE);
    stage.wire.send(&syn)?;
    stage.syn_ack(&syn)?;
    let second = stage.data_to(&syn, SOON).is_some();
    Err(Stop::NotApplicable(format!(
        "It binds applications. Seen: the request was answered: {}; its copy was answered too: {}.",
        yes(first),
        yes(second)
    )))
}

fn experimental(stage: &mut ServerStage) -> Result<Finding, Stop> {
    stage.cookie()?;
    let (_, syn_ack) = stage.open(&experimental_fast_open(&[]), &[])?;
    let Some(cookie) = syn_ack.experimental_cookie().map(<[u8]>::to_vec) else {
        return Ok(Finding::judged(false, "The SYN-ACK has no experimental option."));
    };
    stage.reset(&syn_ack)?;
    let (syn, syn_ack) = stage.open(&experimental_fast_open(&cookie), REQUEST)?;
    let taken = syn_ack.takes_of(&syn) == Some(REQUEST.len() as u32);
    let early = stage.data_to(&syn, SOON).is_some();
    let seen = format!(
        "An experimental cookie of {} bytes; data with it acknowledged: {}, and answered before any ACK: {}.",
        cookie.len(),
        yes(taken),
        yes(early)
    );
    Ok(Finding::judged(taken && early, seen))
}

fn no_option(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let (syn, syn_ack) = stage.open(&[], REQUEST)?;
    let early = stage.data_to(&syn, SILENCE).is_some();
    stage.ack(&syn, &syn_ack, REQUEST)?;
    let answered = stage.data_to(&syn, SOON).is_some();
    let plain = syn_ack.takes_of(&syn) == Some(0) && syn_ack.cookie().is_none();
    let seen = format!(
        "The SYN-ACK is plain: {}; answered before the ACK: {}, after it: {}.",
        yes(plain),
        yes(early),
        yes(answered)
    );
    Ok(Finding::judged(plain && !early && answered, seen))
}

fn zero_payload(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let before = Counters::read()?;
    let (syn, syn_ack) = stage.open(&ticket, &[])?;
    stage.ack(&syn, &syn_ack, REQUEST)?;
    let answered = stage.data_to(&syn, SOON).is_some();
    let passive = Counters::read()?.since(before).passive;
    let seen = format!(
        "The request was answered: {}; TCPFastOpenPassive {passive}.",
        yes(answered)
    );
    Ok(Finding::judged(answered, seen))
}
