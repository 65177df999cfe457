//! Fallback when Fast Open does not work (RFC 7413, sections 4.1.3.1 and 4.2.2).

use std::io::Read;

use super::{Level, Row, Trial};
use crate::jobs::check::client::{
    Again, Answer, COOKIE, ClientStage, NEW_COOKIE, REQUEST, SERVER, Unreachable,
};
use crate::jobs::check::finding::{Finding, Stop, yes};
use crate::jobs::check::rows::request::option_of;
use crate::jobs::check::wire::SILENCE;
use crate::witness::Counters;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "R5-silence",
        level: Level::Must,
        section: "4.1.3.1",
        behaviour: "A client remembers that a SYN with data was not answered.",
        done: "A SYN with data is lost, the bare one after it answered; then another connection.",
        trial: Trial::Client { run: silence },
    },
    Row {
        id: "R5-refusal",
        level: Level::Must,
        section: "4.1.3.1",
        behaviour: "A client remembers that a server did not acknowledge the data of a SYN.",
        done: "Two SYN-ACKs that acknowledge the SYN alone and have no option; then another connection.",
        trial: Trial::Client { run: refusal },
    },
    Row {
        id: "R5-icmp",
        level: Level::Must,
        section: "4.1.3.1",
        behaviour: "A client remembers that a SYN with data was answered by an ICMP error.",
        done: "ICMP: administratively prohibited, for two SYNs with data; then another connection.",
        trial: Trial::Client { run: icmp },
    },
    Row {
        id: "R6-disable",
        level: Level::Should,
        section: "4.1.3.1",
        behaviour: "A path on which SYNs with data are lost is not tried again for some time.",
        done: "Five connections; each SYN with data is lost, each bare one answered.",
        trial: Trial::Client { run: disable },
    },
    Row {
        id: "R7-timeout",
        level: Level::Should,
        section: "4.2.2",
        behaviour: "A SYN with data that was not answered goes again without data and option.",
        done: "No answer to a SYN with a cookie and data.",
        trial: Trial::Client { run: timeout },
    },
    Row {
        id: "R14-client",
        level: Level::Described,
        section: "4.2.2",
        behaviour: "Data of the SYN that was acknowledged does not go again, and an answer that comes \
            before the \
            ACK is read.",
        done: "A SYN-ACK that takes the request, the answer right behind it.",
        trial: Trial::Client { run: accepted },
    },
    Row {
        id: "R15-resend",
        level: Level::Should,
        section: "4.2.2",
        behaviour: "Data of the SYN that was not acknowledged goes again in the first ACK.",
        done: "A SYN-ACK that acknowledges the SYN alone, with a new cookie.",
        trial: Trial::Client { run: resend },
    },
    Row {
        id: "frag-needed",
        level: Level::Linux,
        section: "",
        behaviour: "A SYN with data that is too long for the path goes again at once, without the data.",
        done: "A SYN of 1,400 bytes of data; ICMP: too long for a link with an MTU of 1,280.",
        trial: Trial::Client { run: frag_needed },
    },
];

fn silence(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    lose_data(stage)?;
    let call = stage.call(SERVER, REQUEST)?;
    let seen = format!(
        "The next SYN {} and carries {} bytes of data.",
        option_of(&call.syn),
        call.syn.payload.len()
    );
    Ok(Finding::judged(call.syn.payload.is_empty(), seen))
}

fn refusal(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    for _ in 0..2 {
        stage.open_and_reset(SERVER, &Answer::plain())?;
    }
    third(stage)
}

fn icmp(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    for _ in 0..2 {
        let call = stage.call(SERVER, REQUEST)?;
        stage.unreachable(&call.syn, Unreachable::Prohibited)?;
        stage.wire.drain(SILENCE);
        if call.socket.take_error().is_ok_and(|error| error.is_none()) {
            return Ok(Finding::judged(false, "The connection did not mind the error."));
        }
    }
    third(stage)
}

/// Whether a third connection still has data in its SYN.
fn third(stage: &mut ClientStage) -> Result<Finding, Stop> {
    let call = stage.call(SERVER, REQUEST)?;
    let seen = format!(
        "The third SYN {} and carries {} bytes of data.",
        option_of(&call.syn),
        call.syn.payload.len()
    );
    Ok(Finding::judged(call.syn.payload.is_empty(), seen))
}

fn disable(stage: &mut ClientStage) -> Result<Finding, Stop> {
    const TIMES: usize = 5;
    stage.warm(SERVER)?;
    let mut with_data = 0;
    let mut waited_ms = 0.0;
    for _ in 0..TIMES {
        if let Some(again) = lose_data(stage)? {
            with_data += 1;
            waited_ms += again.after_ms;
        }
    }
    let seen = format!(
        "{with_data} of {TIMES} connections began with data in the SYN, and waited {waited_ms:.0} ms for it."
    );
    // The first connection cannot know yet.
    Ok(Finding::judged(with_data < TIMES, seen))
}

fn timeout(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let call = stage.call(SERVER, REQUEST)?;
    let again = stage.again(&call)?;
    stage.answer(&again.syn, &Answer::plain())?;
    let (data, _) = stage.data_of(&call);
    let bare = again.syn.payload.is_empty() && again.syn.cookie().is_none();
    let seen = format!(
        "After {:.0} ms the SYN went again with {} bytes of data; it {}. The request came after the \
         handshake: {}. \
         TCP_INFO: reason {}.",
        again.after_ms,
        again.syn.payload.len(),
        option_of(&again.syn),
        yes(data == REQUEST),
        call.info()?.client_fail,
    );
    Ok(Finding::judged(bare && data == REQUEST, seen))
}

fn accepted(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let before = Counters::read()?;
    let mut call = stage.call(SERVER, REQUEST)?;
    let taken = Answer {
        taken: REQUEST.len() as u32,
        ..Answer::plain()
    };
    let answered = stage.answer(&call.syn, &taken)?;
    let mut early = call.syn.reply(answered.end(), call.syn.end());
    early.payload = b"hello".to_vec();
    stage.wire.send(&early)?;
    let (_, again) = stage.data_of(&call);
    let read = (&mut call.socket).take(5).read(&mut [0; 5]).unwrap_or_default();
    let info = call.info()?;
    let active = Counters::read()?.since(before).active;
    let seen = format!(
        "Segments that carried the request again: {again}; bytes of the answer read: {read}; \
         TCPFastOpenActive \
         {active}; TCP_INFO: SYN data acknowledged {}.",
        info.syn_data
    );
    let agree = active == 1 && info.syn_data;
    Ok(Finding::judged(again == 0 && read == 5 && agree, seen))
}

fn resend(stage: &mut ClientStage) -> Result<Finding, Stop> {
    stage.warm(SERVER)?;
    let call = stage.call(SERVER, REQUEST)?;
    let answered = stage.answer(&call.syn, &Answer::refusing(&NEW_COOKIE))?;
    let first = stage.first_of(&call)?;
    let info = call.info()?;
    let whole = first.acknowledgment == answered.end() && first.payload == REQUEST;
    let seen = format!(
        "The first ACK carries {} of the {} bytes; TCP_INFO: SYN data acknowledged {}, reason {}.",
        first.payload.len(),
        REQUEST.len(),
        info.syn_data,
        info.client_fail,
    );
    Ok(Finding::judged(
        whole && call.syn.cookie() == Some(&COOKIE) && !info.syn_data,
        seen,
    ))
}

/// A connection whose SYN with data is lost, and whose SYN without data is answered; `None` if its SYN had no data.
fn lose_data(stage: &mut ClientStage) -> Result<Option<Again>, Stop> {
    let call = stage.call(SERVER, REQUEST)?;
    let again = if call.syn.payload.is_empty() {
        None
    } else {
        Some(stage.again(&call)?)
    };
    let syn = again.as_ref().map_or(&call.syn, |again| &again.syn);
    let answered = stage.answer(syn, &Answer::plain())?;
    stage.first_of(&call)?;
    stage.reset(call, &answered)?;
    Ok(again)
}

fn frag_needed(stage: &mut ClientStage) -> Result<Finding, Stop> {
    /// Half of the timeout after which the SYN would be sent again anyway.
    const AT_ONCE_MS: f64 = 500.0;
    let long = vec![b'.'; 1_400];
    stage.warm(SERVER)?;
    let call = stage.call(SERVER, &long)?;
    stage.unreachable(&call.syn, Unreachable::TooLong(1_280))?;
    let again = stage.again(&call)?;
    stage.answer(&again.syn, &Answer::plain())?;
    let (data, segments) = stage.data_of(&call);
    let seen = format!(
        "After {:.0} ms the SYN went again with {} bytes of data; then {} bytes came in {segments} segments.",
        again.after_ms,
        again.syn.payload.len(),
        data.len(),
    );
    let holds = again.after_ms < AT_ONCE_MS && again.syn.payload.is_empty() && data == long;
    Ok(Finding::judged(holds, seen))
}
