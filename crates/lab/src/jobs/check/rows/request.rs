//! Cookie requests (RFC 7413, sections 2 and 4.2.1).

use super::{Level, Row, Trial};
use crate::jobs::check::client::{Answer, ClientStage, REQUEST, SERVER};
use crate::jobs::check::finding::{Finding, Stop};
use crate::jobs::check::packet::Packet;
use crate::witness::Counters;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "R2-request",
        level: Level::Must,
        section: "4.2.1",
        behaviour: "A client that knows no cookie of a server first asks for one: an empty option, no data.",
        done: "A first connection with Fast Open (MSG_FASTOPEN) and a request to send.",
        trial: Trial::Client { run: request },
    },
    Row {
        id: "R2-timeout",
        level: Level::Should,
        section: "4.2.1",
        behaviour: "A SYN that asked for a cookie and was not answered goes again without the option.",
        done: "No answer to the first SYN.",
        trial: Trial::Client { run: timeout },
    },
    Row {
        id: "R2-memory",
        level: Level::Should,
        section: "4.2.1",
        behaviour: "A client that was not given a cookie does not ask the same server again for some time.",
        done: "Five connections to a server that does no Fast Open.",
        trial: Trial::Client { run: memory },
    },
    Row {
        id: "experimental-client",
        level: Level::Linux,
        section: "",
        behaviour: "A client that was not given a cookie tries the experimental option (254, 0xF989) once.",
        done: "Five connections to a server that does no Fast Open.",
        trial: Trial::Client { run: experimental },
    },
    Row {
        id: "R9-client",
        level: Level::MustNot,
        section: "2",
        behaviour: "Fast Open is not used unless the application asks for it.",
        done: "An ordinary connect() to a server whose cookie is cached.",
        trial: Trial::Client { run: not_by_default },
    },
];

fn request(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let call = stage.call(SERVER, REQUEST)?;
    let asks = call.syn.cookie() == Some(&[]);
    let seen = format!(
        "The SYN {} and carries {} bytes of data.",
        option_of(&call.syn),
        call.syn.payload.len()
    );
    stage.answer(&call.syn, &Answer::plain())?;
    Ok(Finding::judged(asks && call.syn.payload.is_empty(), seen))
}

fn timeout(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let call = stage.call(SERVER, REQUEST)?;
    let again = stage.again(&call)?;
    let seen = format!(
        "After {:.0} ms the SYN went again; it {}.",
        again.after_ms,
        option_of(&again.syn)
    );
    Ok(Finding::judged(again.syn.cookie().is_none(), seen))
}

fn memory(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let asked = ask_in_vain(stage)?;
    let last = asked
        .last()
        .is_some_and(|syn| syn.cookie().is_none() && syn.experimental_cookie().is_none());
    Ok(Finding::judged(last, in_turn(&asked)))
}

fn experimental(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let asked = ask_in_vain(stage)?;
    let tried: Vec<_> = asked
        .iter()
        .map(|syn| syn.experimental_cookie() == Some(&[]))
        .collect();
    Ok(Finding::judged(
        tried == [false, true, false, false, false],
        in_turn(&asked),
    ))
}

/// Five SYNs to a server that never gives a cookie.
fn ask_in_vain(stage: &mut ClientStage) -> Result<Vec<Packet>, Stop> {
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(stage.open_and_reset(SERVER, &Answer::plain())?);
    }
    Ok(asked)
}

fn in_turn(syns: &[Packet]) -> String {
    let options: Vec<_> = syns.iter().map(option_of).collect();
    format!("The SYNs in turn: {}.", options.join("; "))
}

fn not_by_default(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let call = stage.connect(SERVER)?;
    let counters = Counters::read()?;
    let bare = call.syn.cookie().is_none() && call.syn.payload.is_empty();
    let seen = format!(
        "The SYN {} and carries {} bytes of data; TCPFastOpenActive is {}.",
        option_of(&call.syn),
        call.syn.payload.len(),
        counters.active
    );
    Ok(Finding::judged(bare && counters.active == 0, seen))
}

/// The Fast Open option of a SYN, as text.
pub(super) fn option_of(syn: &Packet) -> String {
    match (syn.cookie(), syn.experimental_cookie()) {
        (Some([]), _) => "asks for a cookie".to_owned(),
        (Some(cookie), _) => format!("has a cookie of {} bytes", cookie.len()),
        (None, Some([])) => "asks for a cookie with the experimental option".to_owned(),
        (None, Some(cookie)) => format!("has an experimental cookie of {} bytes", cookie.len()),
        (None, None) => "has no option".to_owned(),
    }
}
