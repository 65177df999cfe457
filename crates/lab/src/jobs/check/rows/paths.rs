//! Both kernels, and the middleboxes between them (RFC 7413, sections 4.1.3.1 and 7.1).

use firstflight_load::ledger::Entry;
use firstflight_path::{IpVersion, MiddleboxKind};

use super::{Level, Row, Trial};
use crate::LabError;
use crate::jobs::check::finding::Finding;
use crate::jobs::check::pair::{PairStage, RTT_MS};
use crate::relay::RelayReport;
use crate::witness::Counters;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "R14-together",
        level: Level::Described,
        section: "3",
        behaviour: "A request in a SYN with a cookie is answered after one round trip.",
        done: "This kernel's client and server, 100 ms apart: three requests.",
        trial: Trial::Pair { middlebox: None },
    },
    behind(
        "R19-drop-data",
        "Behind a middlebox that drops SYNs with data the client still gets through.",
        MiddleboxKind::DropData,
    ),
    behind(
        "R19-drop-option",
        "Behind a middlebox that drops SYNs with the option the client still gets through.",
        MiddleboxKind::DropOption,
    ),
    behind(
        "R19-strip-option",
        "Behind a middlebox that takes the option out of SYNs the client still gets through.",
        MiddleboxKind::StripOption,
    ),
    behind(
        "R19-strip-data",
        "Behind a middlebox that takes the data out of SYNs the client still gets through.",
        MiddleboxKind::StripData,
    ),
    behind(
        "R19-reset",
        "Behind a middlebox that resets SYNs with data the client still gets through, if not at first.",
        MiddleboxKind::Reset,
    ),
    behind(
        "R19-black-hole",
        "Behind a middlebox that drops all that follows a SYN with data the client still gets through, if \
         not \
         at first.",
        MiddleboxKind::BlackHole,
    ),
    behind(
        "R19-duplicate-syn",
        "Behind a middlebox that sends SYNs twice each request is served once.",
        MiddleboxKind::DuplicateSyn,
    ),
];

const TIMES: usize = 3;

const fn behind(id: &'static str, behaviour: &'static str, middlebox: MiddleboxKind) -> Row {
    Row {
        id,
        level: Level::Described,
        section: "7.1",
        behaviour,
        done: "This kernel's client, with a cookie, and server, 100 ms apart: three requests.",
        trial: Trial::Pair {
            middlebox: Some(middlebox),
        },
    }
}

/// Sends three requests over a path. Returns their results, and what the relay saw.
pub(in crate::jobs::check) fn run(
    ip: IpVersion,
    middlebox: Option<MiddleboxKind>,
    realtime: bool,
) -> Result<(Finding, RelayReport), LabError> {
    let mut stage = PairStage::build(ip, middlebox, realtime)?;
    let before = Counters::read()?;
    let primed = stage.app.heard().len();
    let mut answered = Vec::new();
    for _ in 0..TIMES {
        answered.push(stage.exchange()?);
    }
    let active = Counters::read()?.since(before).active;
    let heard = stage.app.heard().split_off(primed);
    let report = stage.finish()?;
    let count = |fits: fn(&Entry) -> bool| {
        report
            .ledger
            .entries()
            .iter()
            .filter(|entry| fits(&entry.seen))
            .count()
    };
    let taken = count(Entry::accepted);
    let in_syn = heard.iter().filter(|heard| heard.in_syn).count();
    let through = answered.last().is_some_and(Option::is_some);
    let once = heard.len() <= TIMES;
    let holds = match middlebox {
        None => {
            let soon = |ms: &&Option<f64>| ms.is_some_and(|ms| ms < 1.5 * RTT_MS);
            // Two of three, because the machine may be busy once.
            2 * answered.iter().filter(soon).count() > TIMES && [taken, in_syn, active as usize] == [TIMES; 3]
        }
        Some(_) => through && once,
    };
    let times: Vec<_> = answered
        .iter()
        .map(|ms| ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0} ms")))
        .collect();
    let seen = format!(
        "Answered after {}; SYNs with data {}, taken {taken} (TCPFastOpenActive {active}, TCP_INFO \
         {in_syn}); SYNs \
         sent again {}; requests served {}.",
        times.join(", "),
        count(Entry::offered),
        report
            .ledger
            .entries()
            .iter()
            .map(|entry| entry.seen.syn_retransmits)
            .sum::<u32>(),
        heard.len(),
    );
    Ok((Finding::judged(holds, seen), report))
}
