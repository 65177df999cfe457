//! Measures processor time of threads, programs and whole processors, and assigns processors.

use std::collections::BTreeMap;
use std::fs;

use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};

use crate::LabError;

/// The numbers from the first process on that are searched for the program's processes.
const MOST_PROCESSES: libc::pid_t = 1_000;
/// `CPUCLOCK_SCHED` and `CPUCLOCK_PERTHREAD_MASK` (`include/linux/posix-timers_types.h`).
const CLOCK_SCHED: libc::pid_t = 2;
const CLOCK_OF_THREAD: libc::pid_t = 4;
/// The unit of `/proc/stat` (`USER_HZ`), ns.
const TICK_NS: u64 = 10_000_000;
/// Columns of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
const IDLE: [usize; 2] = [3, 4];
const STOLEN: usize = 7;

/// The tasks whose time is measured.
#[derive(Debug)]
pub(super) enum Tasks {
    /// One thread of this process.
    Thread(libc::pid_t),
    /// A program and all processes it has started.
    Program(Program),
}

/// The processes of a program, each with the last value of its clock.
#[derive(Debug)]
pub(super) struct Program {
    first: libc::pid_t,
    seen: BTreeMap<libc::pid_t, u64>,
    /// Time that ended processes had used when they were last read, ns.
    ended: u64,
}

impl Program {
    /// Reads every process number that may belong to the program; each costs a system call. The time of a process
    /// between the last reading and its end is not counted.
    fn cpu(&mut self) -> u64 {
        let processes = self.first..self.first + MOST_PROCESSES;
        let found: BTreeMap<_, _> = processes
            .filter_map(|process| Some((process, read((!process << 3) | CLOCK_SCHED)?)))
            .collect();
        for (process, last) in &self.seen {
            // A clock that went back belongs to another process with the same number.
            if found.get(process).is_none_or(|now| now < last) {
                self.ended += last;
            }
        }
        self.seen = found;
        self.ended + self.seen.values().sum::<u64>()
    }
}

impl Tasks {
    /// The calling thread.
    pub(super) fn this_thread() -> Self {
        Self::Thread(gettid().as_raw())
    }

    /// A program that was just started.
    pub(super) fn program(first: libc::pid_t) -> Self {
        Self::Program(Program {
            first,
            seen: BTreeMap::new(),
            ended: 0,
        })
    }

    /// Processor time used so far, in user space and in system calls, ns. It never decreases.
    pub(super) fn cpu(&mut self) -> u64 {
        match self {
            Self::Thread(thread) => read((!*thread << 3) | CLOCK_SCHED | CLOCK_OF_THREAD).unwrap_or_default(),
            Self::Program(program) => program.cpu(),
        }
    }
}

/// Another process's or thread's clock (`clock_getcpuclockid(3)`); `None` if it has ended.
fn read(clock: libc::clockid_t) -> Option<u64> {
    let time = clock_gettime(ClockId::from_raw(clock)).ok()?;
    Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// The processors of the clients and of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processors {
    /// Processor of the clients and of the wire towards them.
    pub(super) clients: usize,
    /// Processor of the server and of the wire towards it.
    pub(super) server: usize,
}

impl Processors {
    /// The first two processors that this process may use; the same one twice if there is only one.
    pub(super) fn choose() -> Result<Self, LabError> {
        let set = sched_getaffinity(Pid::from_raw(0))
            .map_err(|errno| LabError::system("asking which processors there are", errno))?;
        let mut allowed = (0..CpuSet::count()).filter(|number| set.is_set(*number).unwrap_or(false));
        let clients = allowed.next().unwrap_or_default();
        Ok(Self {
            clients,
            server: allowed.next().unwrap_or(clients),
        })
    }

    /// The processors' use so far, the server's first.
    pub(super) fn busy(self) -> Result<[Busy; 2], LabError> {
        let text = fs::read_to_string("/proc/stat")
            .map_err(|error| LabError::system("reading /proc/stat", error))?;
        Ok([self.server, self.clients].map(|processor| Busy::of(&text, processor)))
    }

    /// Whether the server has a processor of its own.
    pub(super) fn are_two(self) -> bool {
        self.clients != self.server
    }
}

/// Keeps the calling thread, and what it starts, on one processor.
pub(super) fn stay_on(processor: usize) -> Result<(), LabError> {
    let mut set = CpuSet::new();
    set.set(processor)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|errno| LabError::system("choosing a processor", errno))
}

/// The use of a processor, ns, in steps of 10 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Busy {
    /// Time in which it was not idle, interrupts included.
    pub(super) used: u64,
    /// Time in which another virtual machine had it.
    pub(super) stolen: u64,
}

impl Busy {
    /// The use since `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            used: self.used.saturating_sub(earlier.used),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }

    fn of(text: &str, processor: usize) -> Self {
        let name = format!("cpu{processor}");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&name)?.strip_prefix(' '));
        let columns = line.unwrap_or_default().split_whitespace();
        let ticks: Vec<u64> = columns.filter_map(|value| value.parse().ok()).collect();
        let used = ticks
            .iter()
            .enumerate()
            .filter(|(column, _)| *column < STOLEN && !IDLE.contains(column));
        Self {
            used: used.map(|(_, count)| count).sum::<u64>() * TICK_NS,
            stolen: ticks.get(STOLEN).copied().unwrap_or_default() * TICK_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn the_clock_of_this_thread_is_what_the_thread_itself_reads() {
        let before = clock::thread_cpu();
        let between = Tasks::this_thread().cpu();
        assert!((before..=clock::thread_cpu()).contains(&between));
    }

    #[test]
    fn the_time_of_a_program_does_not_shrink_when_a_process_of_it_ends() {
        let mut first = std::process::Command::new("sh")
            .args([
                "-c",
                "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exec sleep 60",
            ])
            .spawn()
            .expect("a shell");
        let mut program = Tasks::program(first.id().cast_signed());
        let deadline = clock::now() + 30_000_000_000;
        while program.cpu() < 10_000_000 {
            assert!(clock::now() < deadline, "the shell takes no processor time");
            std::thread::yield_now();
        }
        let before = program.cpu();
        first.kill().expect("a process to kill");
        first.wait().expect("a process to wait for");
        assert!(program.cpu() >= before);
    }

    #[test]
    fn a_processor_is_busy_but_for_idling_waiting_and_what_is_stolen() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 100 100 4 5 100 0 0\ncpu10 7 0 0 0 0 0 0 0 0 0\n";
        let one = Busy {
            used: 15 * TICK_NS,
            stolen: 100 * TICK_NS,
        };
        assert_eq!(Busy::of(text, 1), one);
        assert_eq!(Busy::of(text, 10).used, 7 * TICK_NS);
    }
}
