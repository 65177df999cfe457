//! Gives TCP Fast Open to programs that do not use it.
//!
//! Loaded with `LD_PRELOAD`, it sets `TCP_FASTOPEN_CONNECT` before every TCP `connect`, and changes nothing else.
//! If the kernel has a cookie, it then holds the SYN back until the first write and puts that write's data into it
//! (`net/ipv4/tcp_output.c`, `tcp_connect`). If the client may not use Fast Open (`net.ipv4.tcp_fastopen` without
//! bit 1), setting the option fails, and `connect` does what it always did. So `tcp` and `tfo` loads have the same
//! library. To leave no other difference between them, `getpeername` knows the peer from then on, as after a
//! `connect` that waited.
//!
//! It has no effect on programs that are linked statically, run with more rights than their caller, or connect by
//! their own system call (Go, `io_uring`). A client that connects and waits for the server to speak first (SMTP,
//! SSH) would never send its SYN. For such a program, name the ports that may use Fast Open in
//! `FIRSTFLIGHT_PRELOAD_PORTS`, such as `80,443`; without it, all may.

mod connect;
mod errno;
mod next;
mod option;
mod peer;
mod ports;
mod target;

/// Runs when the library is loaded. The initialiser of another library may connect before. Then `Next` looks the C
/// library's function up at that time, and every port may use Fast Open.
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
