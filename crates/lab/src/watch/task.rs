//! Reads another process: its descriptors, its memory, and the file that it runs.
//!
//! Every function may fail because the process has ended meanwhile. It then returns `None` or an empty value, not
//! an error.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::libc;

use super::Linkage;

/// A copy of another process's descriptor (`pidfd_getfd(2)`, Linux 5.6).
pub(super) fn borrow(task: libc::pid_t, descriptor: RawFd) -> Option<OwnedFd> {
    // A task may be a thread; its process has the same descriptors.
    let process = group(task).unwrap_or(task);
    // SAFETY: the call takes numbers.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) })?;
    // SAFETY: the call takes numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) })
}

/// The descriptor that a system call returned.
fn owned(answer: libc::c_long) -> Option<OwnedFd> {
    // SAFETY: the caller of such a call owns the descriptor.
    (answer >= 0).then(|| unsafe { OwnedFd::from_raw_fd(answer as RawFd) })
}

/// The process ID of a task.
fn group(task: libc::pid_t) -> Option<libc::pid_t> {
    let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Reads another process's memory (`process_vm_readv(2)`).
pub(super) fn read_memory<const LENGTH: usize>(task: libc::pid_t, at: u64) -> Option<[u8; LENGTH]> {
    let mut bytes = [0_u8; LENGTH];
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: LENGTH,
    };
    let remote = libc::iovec {
        iov_base: at as *mut libc::c_void,
        iov_len: LENGTH,
    };
    // SAFETY: the kernel writes at most `LENGTH` bytes to `bytes`; the other address is looked up in the other process.
    let read = unsafe { libc::process_vm_readv(task, &raw const local, 1, &raw const remote, 1, 0) };
    (usize::try_from(read) == Ok(LENGTH)).then_some(bytes)
}

/// A socket address that another process has passed to a call.
pub(super) fn peer(task: libc::pid_t, at: u64, length: u64) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(read_memory(task, at)?);
    match i32::from(family) {
        libc::AF_INET if length >= 16 => {
            let bytes = read_memory::<8>(task, at)?;
            let address: [u8; 4] = std::array::from_fn(|byte| bytes[4 + byte]);
            Some((address, u16::from_be_bytes([bytes[2], bytes[3]])).into())
        }
        libc::AF_INET6 if length >= 24 => {
            let bytes = read_memory::<24>(task, at)?;
            let address: [u8; 16] = std::array::from_fn(|byte| bytes[8 + byte]);
            let port = u16::from_be_bytes([bytes[2], bytes[3]]);
            Some(SocketAddr::new(
                std::net::IpAddr::from(address).to_canonical(),
                port,
            ))
        }
        _ => None,
    }
}

/// The name of a task's program.
pub(super) fn program(task: libc::pid_t) -> String {
    let file = fs::read_link(format!("/proc/{task}/exe")).ok();
    let name = file.and_then(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "?".to_owned())
}

/// How a task's program is linked: a dynamic one names an interpreter (elf(5), `PT_INTERP`).
pub(super) fn linkage(task: libc::pid_t) -> Option<Linkage> {
    let mut head = vec![0; 4_096];
    let mut file = fs::File::open(format!("/proc/{task}/exe")).ok()?;
    let length = file.read(&mut head).ok()?;
    has_interpreter(&head[..length]).map(|is_dynamic| {
        if is_dynamic {
            Linkage::Dynamic
        } else {
            Linkage::Static
        }
    })
}

/// Whether a 64-bit ELF file names an interpreter; `None` for any other file.
fn has_interpreter(head: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| {
        let field = head.get(at..at.checked_add(bytes)?)?;
        Some(
            field
                .iter()
                .rev()
                .fold(0_u64, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    // Little-endian, 64 bits.
    if head.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let (start, size, count) = (
        number(32, 8)? as usize,
        number(54, 2)? as usize,
        number(56, 2)? as usize,
    );
    for entry in 0..count {
        if number(start.checked_add(entry * size)?, 4)? == u64::from(PT_INTERP) {
            return Some(true);
        }
    }
    Some(false)
}

/// TLS libraries that a task has mapped.
pub(super) fn tls_libraries(task: libc::pid_t) -> BTreeSet<String> {
    const NAMES: [&str; 8] = [
        "libssl",
        "libgnutls",
        "libnss3",
        "libmbedtls",
        "libwolfssl",
        "libs2n",
        "libboringssl",
        "librustls",
    ];
    let maps = fs::read_to_string(format!("/proc/{task}/maps")).unwrap_or_default();
    maps.lines()
        .filter_map(|line| line.rsplit_once('/').map(|(_, name)| name))
        .filter(|name| NAMES.iter().any(|known| name.starts_with(known)))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_program_is_told_from_a_dynamic_one_by_its_interpreter() {
        let header = |kinds: &[u32]| {
            let mut head = vec![0_u8; 64 + 56 * kinds.len()];
            head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
            (head[32], head[54], head[56]) = (64, 56, kinds.len() as u8);
            for (entry, kind) in kinds.iter().enumerate() {
                head[64 + 56 * entry..][..4].copy_from_slice(&kind.to_le_bytes());
            }
            head
        };
        assert_eq!(has_interpreter(&header(&[6, 3, 1])), Some(true));
        assert_eq!(has_interpreter(&header(&[1, 4])), Some(false));
        assert_eq!(has_interpreter(b"#!/bin/sh\n"), None);
        // A truncated header gives no answer.
        assert_eq!(has_interpreter(&header(&[1, 3])[..100]), None);
        // Nor does a header whose table would begin at the end of the address space.
        let mut beyond = header(&[3]);
        beyond[32..40].fill(0xff);
        assert_eq!(has_interpreter(&beyond), None);
        let ours = std::process::id().cast_signed();
        assert!(linkage(ours).is_some());
    }
}
