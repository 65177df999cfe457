//! Draws random cases, and shrinks cases that diverge.

use firstflight_path::{Nanos, Purpose, Stream};
use firstflight_tcp::Algorithm;
use firstflight_tcp::pair::{Closes, Fault};

use crate::case::{Case, Exchange, FastOpen, Flow, Script};

const US: Nanos = 1_000;
const MS: Nanos = 1_000_000;
/// Largest serialisation time of a response, s.
const MOST_SECONDS: u64 = 1;

/// Draws a case. The same seed gives the same case.
pub fn draw(seed: u64) -> Case {
    let mut random = Random(Stream::new(seed, Purpose::Replay, &[]));
    let kind = random.below(10);
    let flow = random.flow(kind);
    let script = random.script(kind, &flow);
    Case {
        comment: vec![format!("drawn with seed {seed}")],
        flow,
        script,
        recorded: None,
    }
}

struct Random(Stream);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_below(bound)
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn share(&mut self, share: f64) -> bool {
        self.0.is_below(share)
    }

    fn flow(&mut self, kind: u64) -> Flow {
        let down_bps = self.of(&[2, 4, 10, 10, 20, 50]) * 1_000_000;
        // Slow uplinks compress ACKs.
        let up_bps = if kind == 8 {
            self.of(&[64, 128, 256]) * 1_000
        } else {
            self.of(&[512, 1_000, 2_000, 10_000]) * 1_000
        };
        let queue = if kind == 7 {
            self.of(&[3, 5, 8, 12, 20])
        } else {
            self.of(&[50, 100, 1_000])
        };
        let exchanges = 1 + self.of(&[0, 0, 0, 1, 1, 2, 4]);
        let most = down_bps / 8 * MOST_SECONDS / exchanges;
        let exchanges = (0..exchanges).map(|_| Exchange {
            up: if self.share(0.05) {
                3_000 + self.below(6_000)
            } else {
                80 + self.below(700)
            },
            down: self.size().min(most),
            wait: self.of(&[0, 0, 0, 5, 30, 70, 250]) * MS,
        });
        let exchanges = exchanges.collect();
        Flow {
            // Not a round number: with round times, many events would coincide with a limit of the kernel.
            rtt: self.of(&[10, 20, 40, 60, 80, 120, 200, 300]) * MS + self.below(2_000) * US,
            down_bps: Some(down_bps),
            up_bps: Some(up_bps),
            queue,
            initial_window: self.of(&[10, 10, 10, 10, 3, 4, 20]),
            algorithm: self.of(&[
                Algorithm::Cubic,
                Algorithm::Cubic,
                Algorithm::Cubic,
                Algorithm::Reno,
            ]),
            ecn: kind == 9,
            fast_open: self.of(&[
                FastOpen::None,
                FastOpen::None,
                FastOpen::Cookie,
                FastOpen::Cookie,
                FastOpen::Request,
                FastOpen::Unknown,
            ]),
            exchanges,
            close: self.of(&[Closes::Server, Closes::Client, Closes::Nobody]),
        }
    }

    /// Size of a response: 1 kB, 10 kB and 100 kB are equally likely.
    fn size(&mut self) -> u64 {
        let magnitude = self.0.next_f64() * 3.3;
        (200.0 * 10_f64.powf(magnitude)) as u64
    }

    fn script(&mut self, kind: u64, flow: &Flow) -> Script {
        let segments: u64 = flow
            .exchanges
            .iter()
            .map(|exchange| exchange.down / 1_448 + 1)
            .sum();
        let (downs, ups) = (segments as usize + 4, segments as usize / 2 + 8);
        let mut script = Script::default();
        let mut all = |fault: Fault, packets: Vec<(bool, usize)>| {
            script
                .faults
                .extend(packets.into_iter().map(|packet| (packet, fault)));
        };
        match kind {
            // Independent losses.
            0 => {
                let share = self.of(&[0.01, 0.02, 0.05, 0.15]);
                all(Fault::Lost, self.some(share, downs, ups));
            }
            // A burst, or two.
            1 => {
                for _ in 0..=self.below(2) {
                    let first = 2 + self.below(downs as u64) as usize;
                    let last = first + self.below(8) as usize;
                    all(
                        Fault::Lost,
                        (first..=last).map(|packet| (false, packet)).collect(),
                    );
                }
            }
            // A lost tail.
            2 => {
                let tail = 1 + self.below(6) as usize;
                let end = 1 + segments as usize + usize::from(self.share(0.5));
                let first = end.saturating_sub(tail).max(1);
                all(Fault::Lost, (first..=end).map(|packet| (false, packet)).collect());
            }
            // Lost acknowledgments.
            3 => {
                let share = self.of(&[0.1, 0.3, 0.6]);
                all(Fault::Lost, self.some(share, 0, ups));
            }
            // A lost handshake, and perhaps what follows it.
            4 => {
                let packets = [
                    (true, 1),
                    (false, 1),
                    (true, 2),
                    (false, 2),
                    (true, 3),
                    (false, 3),
                ];
                let lost = packets.into_iter().filter(|_| self.share(0.4)).collect();
                all(Fault::Lost, lost);
            }
            // Reordering.
            5 => {
                let (share, longest) = (self.of(&[0.02, 0.05, 0.2]), self.of(&[2, 10, 40]));
                for packet in self.some(share, downs, ups) {
                    let delay = 250 * US + self.below(longest * 1_000) * US;
                    all(Fault::Delayed(delay), vec![packet]);
                }
            }
            // Duplicates among losses.
            6 => {
                all(Fault::Duplicated(0), self.some(0.05, downs, ups));
                all(Fault::Lost, self.some(0.02, downs, ups));
            }
            // A queue that overflows, or a slow uplink, by itself.
            7 | 8 => {}
            // Marks.
            _ => {
                let share = self.of(&[0.01, 0.05]);
                let marked = self.some(share, downs, ups);
                all(Fault::Marked, marked);
                all(Fault::Lost, self.some(0.01, downs, ups));
            }
        }
        script
    }

    /// A random share of the first packets of each direction.
    fn some(&mut self, share: f64, downs: usize, ups: usize) -> Vec<(bool, usize)> {
        let downs = (1..=downs).map(|packet| (false, packet));
        let all = downs.chain((1..=ups).map(|packet| (true, packet)));
        all.filter(|_| self.share(share)).collect()
    }
}

/// The shortest case that still diverges: removes and simplifies while `diverges` holds, in at most `most` tries.
pub fn shrink(case: Case, most: usize, mut diverges: impl FnMut(&Case) -> bool) -> Case {
    let mut shortest = case;
    let mut tries = 0;
    loop {
        let better = simpler(&shortest).into_iter().find(|candidate| {
            tries += 1;
            tries <= most && diverges(candidate)
        });
        match better {
            Some(better) => shortest = better,
            None => return shortest,
        }
    }
}

/// Cases that are simpler by one step, the largest steps first.
fn simpler(case: &Case) -> Vec<Case> {
    let mut candidates = Vec::new();
    let mut with = |change: &dyn Fn(&mut Case)| {
        let mut candidate = case.clone();
        change(&mut candidate);
        if candidate != *case {
            candidates.push(candidate);
        }
    };
    let faults: Vec<_> = case.script.faults.keys().copied().collect();
    let mut size = faults.len().div_ceil(2);
    while size > 0 {
        for chunk in faults.chunks(size) {
            with(&|case| case.script.faults.retain(|packet, _| !chunk.contains(packet)));
        }
        size /= 2;
    }
    let exchanges = case.flow.exchanges.len();
    if exchanges > 1 {
        with(&|case| case.flow.exchanges.truncate(exchanges / 2));
        for index in 0..exchanges {
            with(&|case| {
                case.flow.exchanges.remove(index);
            });
        }
    }
    with(&|case| case.flow.fast_open = FastOpen::None);
    with(&|case| case.flow.close = Closes::Nobody);
    with(&|case| case.flow.ecn = false);
    with(&|case| case.flow.queue = 1_000);
    with(&|case| case.flow.initial_window = 10);
    with(&|case| case.flow.algorithm = Algorithm::Cubic);
    for index in 0..exchanges {
        with(&|case| case.flow.exchanges[index].wait = 0);
        with(&|case| case.flow.exchanges[index].up = 200);
        with(&|case| case.flow.exchanges[index].down = case.flow.exchanges[index].down.div_ceil(2));
    }
    candidates
}
