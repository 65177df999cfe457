//! The text of a case: a flow, a script, and a kernel's packets, one line each.
//!
//! ```text
//! # why this case is kept
//! kernel 6.18.44
//! clock start=37529593158914 jiffies=4294892272
//! memory segment=4352 skb=960
//! flow rtt=80ms down=10mbit up=2mbit queue=50 iw=10 cc=cubic tfo=cookie
//! exchange up=200 down=30000 wait=5ms
//! close server
//! lose down 3
//! delay up 2 10ms
//! duplicate down 4
//! mark down 5
//! trace
//!       0.000 > S 0+200 tfo cookie => 40.812 ; open cwnd 10 ssthresh inf rto 1000
//! end 1800.000
//! ```

use std::fmt;
use std::str::FromStr;

use firstflight_path::{Direction, Ecn, Nanos};
use firstflight_tcp::pair::{Closes, Fault};
use firstflight_tcp::{Algorithm, Range, SendMemory};

use crate::case::{Case, Exchange, FastOpen, Flow, Machine, Recorded, Script};
use crate::trace::{Info, Millis, PHASES, Packet, Sent, TfoOption, Trace};

/// The error for a line that does not belong to a case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// Its number, from 1; 0 if a line is missing.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

type Parsed<T> = Result<T, String>;

impl FromStr for Case {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut case = Draft::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            case.take(line).map_err(|what| ParseError {
                line: number + 1,
                what: format!("{what}: `{line}`"),
            })?;
        }
        case.finish().map_err(|what| ParseError { line: 0, what })
    }
}

#[derive(Default)]
struct Draft {
    comment: Vec<String>,
    flow: Option<Flow>,
    script: Script,
    kernel: Option<String>,
    machine: Machine,
    trace: Option<Trace>,
}

impl Draft {
    fn take(&mut self, line: &str) -> Parsed<()> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "" => {}
            "end" => self.trace()?.end = millis(rest)?,
            _ if self.trace.is_some() => self.trace()?.sent.push(sent(line)?),
            _ if word.starts_with('#') => self.comment.push(line[1..].trim().to_owned()),
            "kernel" => self.kernel = Some(rest.to_owned()),
            "clock" => {
                self.machine.start = number(value(rest, "start")?)?;
                self.machine.jiffies = number(value(rest, "jiffies")?)?;
            }
            "memory" => {
                self.machine.memory = SendMemory {
                    segment: number(value(rest, "segment")?)?,
                    skb: number(value(rest, "skb")?)?,
                };
            }
            "flow" => self.flow = Some(flow(rest)?),
            "exchange" => self.flow()?.exchanges.push(Exchange {
                up: number(value(rest, "up")?)?,
                down: number(value(rest, "down")?)?,
                wait: time(value(rest, "wait").unwrap_or("0ms"))?,
            }),
            "close" => {
                self.flow()?.close = match rest {
                    "nobody" => Closes::Nobody,
                    "server" => Closes::Server,
                    "client" => Closes::Client,
                    _ => return Err("who closes is `server`, `client` or `nobody`".to_owned()),
                };
            }
            "lose" | "delay" | "duplicate" | "mark" => self.fault(word, rest)?,
            "trace" => self.trace = Some(Trace::default()),
            _ => return Err(format!("`{word}` is no line of a case")),
        }
        Ok(())
    }

    fn fault(&mut self, word: &str, rest: &str) -> Parsed<()> {
        let words: Vec<_> = rest.split_whitespace().collect();
        let (direction, packet, fault) = match (word, &words[..]) {
            ("lose", [direction, packet]) => (direction, packet, Fault::Lost),
            ("duplicate", [direction, packet]) => (direction, packet, Fault::Duplicated(0)),
            ("duplicate", [direction, packet, by]) => (direction, packet, Fault::Duplicated(time(by)?)),
            ("mark", [direction, packet]) => (direction, packet, Fault::Marked),
            ("delay", [direction, packet, by]) => (direction, packet, Fault::Delayed(time(by)?)),
            _ => return Err("direction and number of a packet are missing".to_owned()),
        };
        let up = match *direction {
            "up" => true,
            "down" => false,
            _ => return Err("a direction is `up` or `down`".to_owned()),
        };
        self.script.faults.insert((up, number(packet)?), fault);
        Ok(())
    }

    fn flow(&mut self) -> Parsed<&mut Flow> {
        self.flow
            .as_mut()
            .ok_or_else(|| "the flow comes first".to_owned())
    }

    fn trace(&mut self) -> Parsed<&mut Trace> {
        self.trace
            .as_mut()
            .ok_or_else(|| "there is no trace to end".to_owned())
    }

    fn finish(self) -> Parsed<Case> {
        Ok(Case {
            comment: self.comment,
            flow: self.flow.ok_or("there is no flow")?,
            script: self.script,
            recorded: match (self.kernel, self.trace) {
                (Some(kernel), Some(trace)) => Some(Recorded {
                    kernel,
                    machine: self.machine,
                    trace,
                }),
                (None, None) => None,
                _ => return Err("a trace and the kernel's version belong together".to_owned()),
            },
        })
    }
}

fn flow(rest: &str) -> Parsed<Flow> {
    let of = |key| value(rest, key);
    Ok(Flow {
        rtt: time(of("rtt")?)?,
        down_bps: of("down").ok().map(rate).transpose()?,
        up_bps: of("up").ok().map(rate).transpose()?,
        queue: number(of("queue").unwrap_or("1000"))?,
        initial_window: number(of("iw").unwrap_or("10"))?,
        algorithm: match of("cc").unwrap_or("cubic") {
            "cubic" => Algorithm::Cubic,
            "reno" => Algorithm::Reno,
            other => return Err(format!("`{other}` is no congestion control of the model")),
        },
        ecn: rest.split_whitespace().any(|word| word == "ecn"),
        fast_open: match of("tfo").unwrap_or("none") {
            "none" => FastOpen::None,
            "request" => FastOpen::Request,
            "cookie" => FastOpen::Cookie,
            "unknown" => FastOpen::Unknown,
            _ => return Err("tfo is `none`, `request`, `cookie` or `unknown`".to_owned()),
        },
        exchanges: Vec::new(),
        close: Closes::default(),
    })
}

fn sent(line: &str) -> Parsed<Sent> {
    let (line, info) = match line.split_once(';') {
        Some((line, info)) => (line, Some(self::info(info)?)),
        None => (line, None),
    };
    let (packet, fate) = line.split_once("=>").ok_or("no `=>`")?;
    let mut words = packet.split_whitespace();
    let mut next = || {
        words
            .next()
            .ok_or("a packet has a time, a direction, flags and numbers")
    };
    let at = millis(next()?)?;
    let direction = match next()? {
        ">" => Direction::Up,
        "<" => Direction::Down,
        _ => return Err("a direction is `>` or `<`".to_owned()),
    };
    let flags = next()?.to_owned();
    let (seq, len) = next()?.split_once('+').ok_or("no sequence number and length")?;
    let mut packet = Packet {
        flags,
        seq: number(seq)?,
        len: number(len)?,
        ..Packet::default()
    };
    let mut window = None;
    while let Some(word) = words.next() {
        let mut argument = || words.next().ok_or_else(|| format!("`{word}` of what"));
        match word {
            "ack" => packet.ack = number(argument()?)?,
            "win" => window = Some(number(argument()?)?),
            "sack" => packet.sacks = argument()?.split(',').map(range).collect::<Parsed<_>>()?,
            "tfo" => {
                packet.fast_open = Some(match argument()? {
                    "request" => TfoOption::Request,
                    "cookie" => TfoOption::Cookie,
                    _ => return Err("a Fast Open option is a `request` or a `cookie`".to_owned()),
                });
            }
            "ect" => packet.ecn = Ecn::Capable,
            "ce" => packet.ecn = Ecn::Marked,
            _ => return Err(format!("`{word}` says nothing of a packet")),
        }
    }
    let fates = || fate.split_whitespace();
    let arrived = fates().filter(|word| !matches!(*word, "lost" | "marked"));
    Ok(Sent {
        at,
        direction,
        packet,
        window,
        arrived: arrived.map(millis).collect::<Parsed<_>>()?,
        is_marked: fates().any(|word| word == "marked"),
        info,
    })
}

fn info(text: &str) -> Parsed<Info> {
    let words: Vec<_> = text.split_whitespace().collect();
    let [
        phase,
        "cwnd",
        cwnd,
        "ssthresh",
        ssthresh,
        "rto",
        rto,
        ref more @ ..,
    ] = words[..]
    else {
        return Err("a sender has a phase, cwnd, ssthresh and rto".to_owned());
    };
    Ok(Info {
        phase: PHASES
            .into_iter()
            .find(|known| *known == phase)
            .ok_or("an unknown phase")?,
        cwnd: number(cwnd)?,
        ssthresh: if ssthresh == "inf" {
            0x7fff_ffff
        } else {
            number(ssthresh)?
        },
        rto: number::<Nanos>(rto)? * 1_000_000,
        reordering_window: match more {
            ["reordering", window] => Some(millis(window)?),
            _ => None,
        },
    })
}

fn value<'a>(text: &'a str, key: &str) -> Parsed<&'a str> {
    let mut pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
    let found = pairs.find(|(name, _)| *name == key);
    found
        .map(|(_, value)| value)
        .ok_or_else(|| format!("no `{key}=`"))
}

fn number<T: FromStr>(text: &str) -> Parsed<T> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn range(text: &str) -> Parsed<Range> {
    let (from, to) = text.split_once('-').ok_or("a range is FROM-TO")?;
    Ok((number(from)?, number(to)?))
}

fn millis(text: &str) -> Parsed<Nanos> {
    let ms: f64 = number(text.trim())?;
    if !(0.0..1e9).contains(&ms) {
        return Err(format!("`{text}` is no time"));
    }
    Ok((ms * 1e6).round() as Nanos)
}

fn time(text: &str) -> Parsed<Nanos> {
    millis(
        text.strip_suffix("ms")
            .ok_or_else(|| format!("`{text}` is no time in ms"))?,
    )
}

fn rate(text: &str) -> Parsed<u64> {
    let units = [("kbit", 1_000), ("mbit", 1_000_000)];
    let found = units
        .iter()
        .find_map(|(unit, bps)| Some((text.strip_suffix(unit)?, bps)));
    let (count, bps) = found.ok_or_else(|| format!("`{text}` is no rate in kbit or mbit"))?;
    number::<u64>(count).map(|count| count.saturating_mul(*bps))
}

/// The text that [`Case::from_str`] parses.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.comment {
            writeln!(f, "# {line}")?;
        }
        if let Some(Recorded { kernel, machine, .. }) = &self.recorded {
            writeln!(f, "kernel {kernel}")?;
            writeln!(f, "clock start={} jiffies={}", machine.start, machine.jiffies)?;
            let SendMemory { segment, skb } = machine.memory;
            if machine.memory != SendMemory::default() {
                writeln!(f, "memory segment={segment} skb={skb}")?;
            }
        }
        write!(f, "{}{}", self.flow, self.script)?;
        let Some(Recorded { trace, .. }) = &self.recorded else {
            return Ok(());
        };
        writeln!(f, "trace")?;
        for sent in &trace.sent {
            writeln!(f, "{sent}")?;
        }
        writeln!(f, "end {}", Millis(trace.end))
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow rtt={}", ms(self.rtt))?;
        for (key, rate) in [("down", self.down_bps), ("up", self.up_bps)] {
            match rate {
                Some(bps) if bps % 1_000_000 == 0 => write!(f, " {key}={}mbit", bps / 1_000_000)?,
                Some(bps) => write!(f, " {key}={}kbit", bps / 1_000)?,
                None => {}
            }
        }
        let cc = match self.algorithm {
            Algorithm::Cubic => "cubic",
            Algorithm::Reno => "reno",
        };
        let tfo = match self.fast_open {
            FastOpen::None => "none",
            FastOpen::Request => "request",
            FastOpen::Cookie => "cookie",
            FastOpen::Unknown => "unknown",
        };
        let ecn = if self.ecn { " ecn" } else { "" };
        let (queue, iw) = (self.queue, self.initial_window);
        writeln!(f, " queue={queue} iw={iw} cc={cc} tfo={tfo}{ecn}")?;
        for Exchange { up, down, wait } in &self.exchanges {
            writeln!(f, "exchange up={up} down={down} wait={}", ms(*wait))?;
        }
        let close = match self.close {
            Closes::Nobody => "nobody",
            Closes::Server => "server",
            Closes::Client => "client",
        };
        writeln!(f, "close {close}")
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((up, number), fault) in &self.faults {
            let direction = if *up { "up" } else { "down" };
            match fault {
                Fault::Lost => writeln!(f, "lose {direction} {number}")?,
                Fault::Delayed(by) => writeln!(f, "delay {direction} {number} {}", ms(*by))?,
                Fault::Duplicated(0) => writeln!(f, "duplicate {direction} {number}")?,
                Fault::Duplicated(by) => writeln!(f, "duplicate {direction} {number} {}", ms(*by))?,
                Fault::Marked => writeln!(f, "mark {direction} {number}")?,
            }
        }
        Ok(())
    }
}

fn ms(time: Nanos) -> String {
    format!("{}ms", time as f64 / 1e6)
}
