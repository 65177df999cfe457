//! The Fast Open option on the wire (RFC 7413, section 4.1.1).

use super::{Level, Row, Trial};
use crate::jobs::check::client::{ClientStage, MSS, Peer, REQUEST, granted};
use crate::jobs::check::finding::{Finding, Stop};
use crate::jobs::check::server::{self, OPEN, ServerStage};
use crate::jobs::check::wire::SOON;
use crate::packet::{fast_open, mss};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "R1-grant",
        level: Level::Must,
        section: "4.1.1",
        behaviour: "A request for a cookie is answered by an option of kind 34 with 4 to 16 bytes, an even \
            number.",
        done: "A SYN with an empty option and no data.",
        trial: Trial::Server {
            settings: OPEN,
            run: grant,
        },
    },
    Row {
        id: "R1-length-server",
        level: Level::Must,
        section: "4.1.1",
        behaviour: "A server ignores options of invalid length.",
        done: "SYNs with data and options with 1, 2, 3, 5, 7, 17 and 18 bytes, cut from or grown out of a \
            good cookie.",
        trial: Trial::Server {
            settings: OPEN,
            run: length_server,
        },
    },
    Row {
        id: "R1-no-syn",
        level: Level::Must,
        section: "4.1.1",
        behaviour: "An option outside a SYN is ignored.",
        done: "An ordinary handshake, then a request in a segment that carries a good cookie.",
        trial: Trial::Server {
            settings: OPEN,
            run: no_syn,
        },
    },
    Row {
        id: "R1-cookie-client",
        level: Level::Must,
        section: "4.1.1",
        behaviour: "A client sends back the cookie that it was given, byte for byte.",
        done: "Servers that grant cookies of 4, 6, 8, 14 and 16 bytes; a second connection to each.",
        trial: Trial::Client { run: cookie_client },
    },
    Row {
        id: "R1-length-client",
        level: Level::Must,
        section: "4.1.1",
        behaviour: "A client ignores cookies of invalid length.",
        done: "Servers that grant cookies of 1, 2, 3, 5, 15 and 18 bytes; a second connection to each.",
        trial: Trial::Client { run: length_client },
    },
];

fn grant(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let Some(cookie) = stage.ask_for_cookie(server::CLIENT)? else {
        return Ok(Finding::judged(
            false,
            "The SYN-ACK has no option: Fast Open is off, or needs no cookie.",
        ));
    };
    let valid = (4..=16).contains(&cookie.len()) && cookie.len() % 2 == 0;
    Ok(Finding::judged(
        valid,
        format!("The SYN-ACK has a cookie of {} bytes.", cookie.len()),
    ))
}

fn length_server(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let mut cookie = stage.cookie()?;
    cookie.resize(18, 0);
    let mut minded = Vec::new();
    for length in [1, 2, 3, 5, 7, 17, 18] {
        let (syn, syn_ack) = stage.open(&fast_open(&cookie[..length]), server::REQUEST)?;
        if syn_ack.takes_of(&syn) != Some(0) || syn_ack.cookie().is_some() {
            minded.push(length);
        }
        stage.reset(&syn_ack)?;
    }
    let seen = match minded.as_slice() {
        [] => "Each SYN-ACK acknowledged the SYN alone and had no option, as if none had come.".to_owned(),
        some => format!("Not ignored: cookies of {some:?} bytes."),
    };
    Ok(Finding::judged(minded.is_empty(), seen))
}

fn no_syn(stage: &mut ServerStage) -> Result<Finding, Stop> {
    let ticket = stage.ticket()?;
    let (syn, syn_ack) = stage.open(&[], &[])?;
    let mut request = syn_ack.reply(syn_ack.acknowledgment, syn_ack.end());
    request.options = ticket;
    request.payload = server::REQUEST.to_vec();
    stage.wire.send(&request)?;
    let answered = stage.data_to(&syn, SOON).is_some();
    let seen = if answered {
        "The request was answered as any other."
    } else {
        "The request was not answered."
    };
    Ok(Finding::judged(answered, seen))
}

fn cookie_client(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let mut altered = Vec::new();
    for (length, address) in [4, 6, 8, 14, 16].into_iter().zip(1..) {
        let server = Peer::numbered(address);
        let cookie: Vec<_> = (1..=length).map(|byte: u8| byte.wrapping_mul(37)).collect();
        stage.grant(server, &granted(&cookie))?;
        let call = stage.call(server, REQUEST)?;
        if call.syn.cookie() != Some(&cookie) {
            altered.push(length);
        }
    }
    let seen = match altered.as_slice() {
        [] => "Each second SYN carried the very bytes.".to_owned(),
        some => format!("Not sent back as they were: cookies of {some:?} bytes."),
    };
    Ok(Finding::judged(altered.is_empty(), seen))
}

fn length_client(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let mut cached = Vec::new();
    for (length, address) in [1, 2, 3, 5, 15, 18].into_iter().zip(1..) {
        let server = Peer::numbered(address);
        stage.grant(server, &[mss(MSS), fast_open(&vec![7; length])].concat())?;
        let call = stage.call(server, REQUEST)?;
        if call.syn.cookie().is_some_and(|cookie| !cookie.is_empty()) {
            cached.push(length);
        }
    }
    let seen = match cached.as_slice() {
        [] => "Each second SYN asked for a cookie again, or sent none.".to_owned(),
        some => format!("Kept and sent: cookies of {some:?} bytes."),
    };
    Ok(Finding::judged(cached.is_empty(), seen))
}
