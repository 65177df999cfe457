//! The errors of laboratories and jobs, each with what the user can do about it.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use firstflight_page::PageError;
use nix::errno::Errno;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Why a job has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The system refuses something that the lab needs.
    #[error("{tried}: {answer}")]
    System {
        /// What was tried.
        tried: String,
        /// The answer of the kernel, or of a library that asked it.
        answer: String,
    },
    /// A bug of this program: a thread has died, or the program cannot use its own output.
    #[error("{0}")]
    Bug(String),

    /// There is no job of this name.
    #[error("'{0}' is not a job")]
    UnknownJob(String),
    /// A job, or a part of it, does not have its format.
    #[error("{what}: {problem}")]
    Malformed {
        /// What was expected.
        what: &'static str,
        /// The problem.
        problem: String,
    },
    /// A number of a job is out of range.
    #[error("the job: {name} is {value}")]
    OutOfRange {
        /// The number's key.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The range.
        bound: String,
    },
    /// A flood with valid cookies has no address.
    #[error("the job: flood.addresses is 0: a flood with valid cookies needs an address that has one")]
    FloodWithoutAddress,
    /// A page is invalid.
    #[error("page.{0}")]
    Page(#[from] PageError),
    /// A path is invalid.
    #[error(transparent)]
    Path(#[from] firstflight_path::PathError),
    /// `check` has no such row.
    #[error("'{0}' is no row")]
    UnknownRow(String),

    /// The kernel, or a container's policy, forbids namespaces.
    #[error("the kernel refuses new namespaces: {0}")]
    NoNamespaces(Errno),
    /// The lab cannot mount a `/proc` of its own.
    #[error("a client would see the host's processes: mounting /proc: {0}")]
    MaskedProc(Errno),
    /// A container makes the kernel's settings read-only, even those of the lab's own namespaces.
    #[error("the kernel's settings are read-only here, {0} too")]
    ReadOnlySettings(String),
    /// The system has no hosts file, and the kernel does not let the lab mount one.
    #[error("this system has no /etc/hosts, and a lab cannot mount an overlay that has one: {0}")]
    NoHostsFile(Errno),
    /// The lab runs as root, and there is no second user for a client.
    #[error("a client would run as root: this lab has no other user")]
    ClientIsRoot,
    /// There is no TUN device, or this user may not open it.
    #[error("/dev/net/tun: {0}")]
    NoTun(io::Error),
    /// The kernel has no IPv6.
    #[error("this kernel has no IPv6")]
    NoIpv6,
    /// The kernel has no virtual Ethernet pairs.
    #[error("this kernel has no veth devices, over which the calibration measures this machine")]
    NoVeth,
    /// The kernel has no such congestion control.
    #[error("this kernel has no congestion control {0}")]
    NoCongestionControl(String),
    /// QUIC has no such congestion control.
    #[error("QUIC has no congestion control {0}")]
    NoQuicCongestionControl(String),
    /// This user may not have as many descriptors as the page's listeners need.
    #[error(
        "{listeners} {} {needed} file descriptors, and the limit is {limit}",
        if *listeners == 1 { "listener needs" } else { "listeners need" }
    )]
    FewDescriptors {
        /// Listeners of the page's origins.
        listeners: u64,
        /// Descriptors that they and the lab need.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// No descriptor, or no memory, was left to accept a connection.
    #[error("the servers could not accept a connection: {0}")]
    NotAccepted(String),

    /// A recorded body cannot be read.
    #[error("{}: {problem}", file.display())]
    Unreadable {
        /// Its path.
        file: PathBuf,
        /// The system's error.
        problem: io::Error,
    },
    /// A file cannot be written.
    #[error("writing {}: {problem}", file.display())]
    Unwritable {
        /// Its path.
        file: PathBuf,
        /// The error of the system, or of the format's library.
        problem: String,
    },

    /// A program that the user named could not be started.
    #[error("{}{program}: {problem}", role.cannot_run())]
    NotStarted {
        /// Its role.
        role: Role,
        /// Its name.
        program: String,
        /// The kernel's error.
        problem: io::Error,
    },
    /// The user's server does not do what `check` needs; the message says what.
    #[error("server: {problem}")]
    CheckedServer {
        /// What it did, and what it printed.
        problem: String,
        /// Whether the cause may be that it runs as root, the only user.
        as_root: bool,
    },
    /// A server on another machine cannot be examined.
    #[error("{address}: {problem}")]
    RemoteServer {
        /// Its address.
        address: std::net::SocketAddr,
        /// The reason.
        problem: String,
    },
    /// This machine's own client does not use Fast Open.
    #[error("this machine's client does no Fast Open: {0}")]
    ClientWithoutFastOpen(&'static str),
    /// The user's server does not do what `stress` needs.
    #[error("{problem}{printed}")]
    StressedServer {
        /// The problem.
        problem: ServerProblem,
        /// What it printed.
        printed: String,
    },
    /// A packet that the check needs did not come.
    #[error("no {what} came within {seconds:.1} s")]
    Missing {
        /// Which packet.
        what: String,
        /// How long the check waited, seconds.
        seconds: f64,
    },
}

/// The role of a user's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A client that loads a page.
    Client,
    /// The server that `check` or `stress` examines.
    Server,
    /// Anything else.
    Program,
}

impl Role {
    fn cannot_run(self) -> &'static str {
        match self {
            Self::Client => "the client cannot be run: ",
            Self::Server => "server: cannot run ",
            Self::Program => "cannot run ",
        }
    }
}

/// What is wrong with a server that is measured under load.
#[derive(Debug, thiserror::Error)]
pub enum ServerProblem {
    /// It ended, or went into the background.
    #[error("the server has ended ({0})")]
    Ended(std::process::ExitStatus),
    /// It does not serve the object that `stress` requests.
    #[error("the server answers GET {target} with something else than status 200 and {body_bytes} bytes")]
    OtherAnswer {
        /// The target of the request.
        target: &'static str,
        /// Size of the object, bytes.
        body_bytes: usize,
    },
    /// It does not answer.
    #[error("the server does not answer at {0}")]
    Silent(std::net::SocketAddrV4),
    /// It does not use Fast Open.
    #[error("the server gives no Fast Open cookies: there is no flood with valid ones")]
    NoCookies,
}

impl LabError {
    /// The error of a system call: what was tried, and how the kernel answered.
    pub fn system(tried: impl Into<String>, answer: impl Display) -> Self {
        Self::System {
            tried: tried.into(),
            answer: answer.to_string(),
        }
    }

    /// A state that this program does not expect.
    pub fn bug(what: impl Into<String>) -> Self {
        Self::Bug(what.into())
    }

    /// A part of a job that does not have its format.
    pub fn malformed(what: &'static str, problem: impl Display) -> Self {
        let problem = problem.to_string();
        Self::Malformed { what, problem }
    }

    /// A file that cannot be written.
    pub fn unwritable(file: &Path, problem: impl Display) -> Self {
        Self::Unwritable {
            file: file.to_owned(),
            problem: problem.to_string(),
        }
    }

    /// Refuses a number of a job that is not from `least` to `most`.
    ///
    /// # Errors
    /// [`LabError::OutOfRange`] naming it.
    pub fn check_range(name: &'static str, value: f64, least: f64, most: f64) -> Result<(), Self> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        let bound = if value > most {
            format!("at most {most}")
        } else if least > 0.0 {
            "above 0".to_owned()
        } else {
            "0 or more".to_owned()
        };
        Err(Self::OutOfRange { name, value, bound })
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::System { .. } => "run `firstflight doctor`: it names what the lab lacks",
            Self::Bug(_) => "please report this as a bug",
            Self::UnknownJob(_) => {
                "use `firstflight run`; this program is its laboratory (load, calibrate, check, doctor)"
            }
            Self::Malformed { .. } => "send one line of JSON",
            Self::OutOfRange { bound, .. } => return format!("give {bound}").into(),
            Self::FloodWithoutAddress => "give 1 or more",
            Self::Page(error) => return error.hint.clone().into(),
            Self::Path(_) => "correct the path's description",
            Self::UnknownRow(_) => "firstflight check names them all",
            Self::NoNamespaces(_) => {
                "run `firstflight doctor`: it says what forbids user namespaces here and how to allow them"
            }
            Self::MaskedProc(_) | Self::ReadOnlySettings(_) => {
                "give the container an unmasked /proc: Docker `--security-opt systempaths=unconfined`, \
                 Podman `--security-opt unmask=ALL`"
            }
            Self::NoHostsFile(_) => "as root: echo 127.0.0.1 localhost >/etc/hosts",
            Self::ClientIsRoot => {
                "run firstflight as an ordinary user, or give this container user ids up to 65534"
            }
            Self::NoTun(_) => {
                "load the module (`modprobe tun`) and let users open it (`chmod 666 /dev/net/tun`); \
                 in a container pass `--device /dev/net/tun`"
            }
            Self::NoIpv6 => {
                "load the module (`modprobe ipv6`), start Linux without ipv6.disable=1, or use --ip 4"
            }
            Self::NoVeth => "as root: modprobe veth; a kernel of your own needs CONFIG_VETH",
            Self::NoQuicCongestionControl(_) => "choose cubic, reno or bbr",
            Self::NoCongestionControl(name) => {
                return format!("as root: modprobe tcp_{name}; or choose another").into();
            }
            Self::FewDescriptors { needed, .. } => {
                return format!(
                    "raise the hard limit: `ulimit -Hn {needed}` as root, LimitNOFILE= of a systemd service, \
                     `--ulimit nofile={needed}` of a container; or load a page of fewer origins"
                )
                .into();
            }
            Self::NotAccepted(_) => {
                "open fewer connections at once, or raise the hard limit of file descriptors (`ulimit -Hn`)"
            }
            Self::Unreadable { .. } => "the archive has changed since it was opened: start again",
            Self::Unwritable { .. } => {
                "name a file in a folder that exists and may be written to, on a disk with space left"
            }
            Self::NotStarted { role, .. } => match role {
                Role::Client => "install it, or name another client",
                Role::Server | Role::Program => "name a program that is installed, or its path",
            },
            Self::CheckedServer { as_root: true, .. } => {
                "try the command by itself; in here root cannot become another user, so that nginx wants \
                 `user root;`; --port names where it listens"
            }
            Self::CheckedServer { .. } => "try the command by itself; --port names where it listens",
            Self::RemoteServer { .. } => {
                "try it with curl: it must be reachable from here and answer GET / over HTTP; rows that need \
                 raw packets are for --server"
            }
            Self::ClientWithoutFastOpen(_) => {
                "as root: sysctl net.ipv4.tcp_fastopen=1; sysctl net.ipv4.tcp_fastopen_blackhole_timeout_sec=0"
            }
            Self::StressedServer { problem, .. } => match problem {
                ServerProblem::Ended(_) => "it has to stay in the foreground",
                ServerProblem::OtherAnswer { .. } => "let it serve the folder that it is started in",
                ServerProblem::Silent(_) => "let it listen on every address, port 80",
                ServerProblem::NoCookies => "use a server that listens with TCP_FASTOPEN, or another --flood",
            },
            Self::Missing { .. } => "look at the capture",
        })
    }
}

impl Serialize for LabError {
    /// The JSON that the Python side reads: `message` and `hint`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("LabError", 2)?;
        fields.serialize_field("message", &self.to_string())?;
        fields.serialize_field("hint", &self.hint())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_descriptors_is_named_with_the_number_of_listeners() {
        let said = |listeners| {
            let (needed, limit) = (1_024 + listeners, 1_024);
            LabError::FewDescriptors {
                listeners,
                needed,
                limit,
            }
            .to_string()
        };
        assert_eq!(
            said(1),
            "1 listener needs 1025 file descriptors, and the limit is 1024"
        );
        assert_eq!(
            said(2),
            "2 listeners need 1026 file descriptors, and the limit is 1024"
        );
    }

    #[test]
    fn an_error_is_written_with_its_message_and_its_hint() {
        let error = LabError::system("fork", "no memory");
        assert_eq!(
            serde_json::to_value(&error).expect("two strings"),
            serde_json::json!({
                "message": "fork: no memory", "hint": "run `firstflight doctor`: it names what the lab lacks",
            })
        );
    }
}
