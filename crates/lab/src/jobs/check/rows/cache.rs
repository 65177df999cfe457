//! What a client caches of a server (RFC 7413, section 4.1.3).

use std::io::Write;

use firstflight_path::IpVersion;

use super::{Level, Row, Trial};
use crate::jobs::check::client::{Answer, COOKIE, ClientStage, NEW_COOKIE, OTHER, REQUEST, SERVER, granted};
use crate::jobs::check::finding::{Finding, Stop, yes};
use crate::jobs::check::rows::request::option_of;
use crate::jobs::check::wire::SILENCE;
use crate::packet::{fast_open, mss};

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "R3-cache",
        level: Level::Must,
        section: "4.1.3",
        behaviour: "A client keeps cookies for later connections, to other ports of the same server too.",
        done: "A cookie from port 80; then connections to ports 80 and 8080.",
        trial: Trial::Client { run: cache },
    },
    Row {
        id: "R3-address",
        level: Level::Must,
        section: "4.1.3",
        behaviour: "A cookie is for one server address.",
        done: "A cookie from one server; then a connection to another.",
        trial: Trial::Client { run: address },
    },
    Row {
        id: "R3-newest",
        level: Level::Must,
        section: "4.1.3",
        behaviour: "The most recent cookie replaces the one before.",
        done: "A cookie; a second one in the SYN-ACK that refuses the first; then a third connection.",
        trial: Trial::Client { run: newest },
    },
    Row {
        id: "R4-mss",
        level: Level::Should,
        section: "4.1.3",
        behaviour: "A client keeps the segment size that a server announced with its cookie, and fills \
            later SYNs no further.",
        done: "A server that announces 800 bytes; then 3,000 bytes to send.",
        trial: Trial::Client { run: segment_size },
    },
    Row {
        id: "R4-default",
        level: Level::Described,
        section: "4.1.3",
        behaviour: "Without a segment size from the server a SYN carries at most 536 bytes, over IPv6 1,220.",
        done: "A cookie in a SYN-ACK that announces no segment size; then 3,000 bytes to send.",
        trial: Trial::Client { run: default_size },
    },
    Row {
        id: "zero-cookie",
        level: Level::Linux,
        section: "",
        behaviour: "A cookie of zeros is as good as any.",
        done: "A server that grants eight zeros; then another connection.",
        trial: Trial::Client { run: zeros },
    },
    Row {
        id: "short-cookie",
        level: Level::Linux,
        section: "",
        behaviour: "A cookie that is too short is not kept; the segment size announced with it is.",
        done: "A good cookie; a SYN-ACK with a cookie of 2 bytes and a segment size of 800; then 3,000 \
            bytes to send.",
        trial: Trial::Client { run: short },
    },
    Row {
        id: "R17-large",
        level: Level::Advice,
        section: "6",
        behaviour: "A first request should fit into one segment: what does not waits for the SYN-ACK.",
        done: "3,000 bytes to send with a good cookie; no SYN-ACK for a quarter of a second, then one that \
            takes the data.",
        trial: Trial::Client { run: large },
    },
];

fn cache(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let mut carried = Vec::new();
    for port in [80, 8_080] {
        let call = stage.call(SERVER.at_port(port), REQUEST)?;
        carried.push(call.syn.cookie() == Some(&COOKIE) && call.syn.payload == REQUEST);
    }
    let seen = format!(
        "Cookie and request in the SYN to port 80: {}; to port 8080: {}.",
        yes(carried[0]),
        yes(carried[1])
    );
    Ok(Finding::judged(carried == [true, true], seen))
}

fn address(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let call = stage.call(OTHER, REQUEST)?;
    let asks = call.syn.cookie() == Some(&[]) && call.syn.payload.is_empty();
    let seen = format!("The SYN to the other server {}.", option_of(&call.syn));
    Ok(Finding::judged(asks, seen))
}

fn newest(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let call = stage.call(SERVER, REQUEST)?;
    let answered = stage.answer(&call.syn, &Answer::refusing(&NEW_COOKIE))?;
    stage.data_of(&call);
    stage.reset(call, &answered)?;
    let call = stage.call(SERVER, REQUEST)?;
    let newest = call.syn.cookie() == Some(&NEW_COOKIE);
    let seen = if newest {
        "The third SYN has the second cookie."
    } else {
        "The third SYN has not the second cookie."
    };
    Ok(Finding::judged(newest, seen))
}

/// More than fits into a SYN.
const LONG: [u8; 3_000] = [b'.'; 3_000];

fn segment_size(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.grant(SERVER, &[mss(800), fast_open(&COOKIE)].concat())?;
    let carried = stage.call(SERVER, &LONG)?.syn.payload.len();
    let seen = format!("The SYN carries {carried} bytes, beside its options.");
    Ok(Finding::judged((1..=800).contains(&carried), seen))
}

fn default_size(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.grant(SERVER, &fast_open(&COOKIE))?;
    let carried = stage.call(SERVER, &LONG)?.syn.payload.len();
    let seen = format!("The SYN carries {carried} bytes.");
    let most = match stage.wire.ip() {
        IpVersion::V4 => 536,
        IpVersion::V6 => 1_220,
    };
    Ok(Finding::judged((1..=most).contains(&carried), seen))
}

fn zeros(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.grant(SERVER, &granted(&[0; 8]))?;
    let call = stage.call(SERVER, REQUEST)?;
    let used = call.syn.cookie() == Some(&[0; 8]) && call.syn.payload == REQUEST;
    let seen = format!(
        "The SYN {} and carries {} bytes of data.",
        option_of(&call.syn),
        call.syn.payload.len()
    );
    Ok(Finding::judged(used, seen))
}

fn short(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let odd = Answer {
        taken: REQUEST.len() as u32,
        options: [mss(800), fast_open(&[9, 9])].concat(),
        ..Answer::default()
    };
    stage.open_and_reset(SERVER, &odd)?;
    let syn = stage.call(SERVER, &LONG)?.syn;
    let seen = format!(
        "The next SYN {} and carries {} bytes.",
        option_of(&syn),
        syn.payload.len()
    );
    let holds = syn.cookie() == Some(&COOKIE) && (1..=800).contains(&syn.payload.len());
    Ok(Finding::judged(holds, seen))
}

fn large(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let call = stage.call(SERVER, &LONG)?;
    let carried = call.syn.payload.len();
    let more = &LONG[call.accepted..];
    let early = (&call.socket).write(more).unwrap_or_default();
    let between = stage.wire.drain(SILENCE).len();
    let taken = Answer {
        taken: carried as u32,
        ..Answer::plain()
    };
    stage.answer(&call.syn, &taken)?;
    stage.first_of(&call)?;
    let late = (&call.socket).write(&more[early..]).unwrap_or_default();
    stage.wire.drain(SILENCE);
    Err(Stop::NotApplicable(format!(
        "It binds applications. Seen: {carried} of {} bytes in the SYN; {between} segments before the \
         SYN-ACK; the application could write {early} bytes before it, {late} after it.",
        LONG.len()
    )))
}
