//! Gives programs that know nothing of it TCP Fast Open.
//!
//! Loaded with `LD_PRELOAD`, it sets `TCP_FASTOPEN_CONNECT` before every TCP `connect` and otherwise keeps out
//! of the way. The kernel then holds the SYN back until the first write and puts that write's data into it if
//! it has a cookie (`net/ipv4/tcp_output.c`, `tcp_connect`). Where the client may not use Fast Open
//! (`net.ipv4.tcp_fastopen` without bit 1) setting the option fails, and `connect` does what it always did: so
//! the same library is loaded in `tcp` and in `tfo` loads. So that nothing but the handshake differs between
//! them, `getpeername` knows the peer from then on, as it does after a `connect` that waited.
//!
//! What it cannot reach: programs that are linked statically, run with more rights than their caller, or
//! connect by a system call of their own (Go, `io_uring`). A client that connects and waits for the server to
//! speak first (SMTP, SSH) would never send its SYN: for such a program, name the ports that may use Fast Open
//! in `FIRSTFLIGHT_PRELOAD_PORTS`, such as `80,443`; without it, all may.

mod connect;
mod errno;
mod next;
mod option;
mod peer;
mod ports;
mod target;

/// Runs when the library is loaded. Another library's initialiser may connect before: then the way to the next
/// function is found there, and every port may use Fast Open.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALISE: extern "C" fn() = {
    extern "C" fn initialise() {
        connect::NEXT.find();
        peer::NEXT.find();
        ports::read_environment();
    }
    initialise
};
