//! A pcapng file of the packets on the wire, as a capture at the client's end would show them.

use std::borrow::Cow;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::{Duration, SystemTime};

use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use crate::{LabError, clock};

/// Packets kept in memory until the load is over. Writing a file during the load would make the relay late.
#[derive(Debug, Default)]
pub struct Capture {
    packets: Vec<(u64, Vec<u8>)>,
}

impl Capture {
    /// Keeps a packet seen at `now`, ns.
    pub(crate) fn keep(&mut self, now: u64, packet: &[u8]) {
        self.packets.push((now, packet.to_vec()));
    }

    /// Every packet with its time, ns.
    pub(crate) fn packets(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.packets.iter().map(|(at, packet)| (*at, packet.as_slice()))
    }

    /// Writes everything to `path`.
    ///
    /// # Errors
    /// [`LabError`] naming the file when it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), LabError> {
        let failed = |error: &dyn std::fmt::Display| LabError::unwritable(path, error);
        let file = File::create(path).map_err(|error| failed(&error))?;
        let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(|error| failed(&error))?;
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed("client")),
                // Timestamps in units of 10^-9 s.
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        writer
            .write_pcapng_block(interface)
            .map_err(|error| failed(&error))?;
        let epoch = wall_clock_offset();
        for (at, packet) in &self.packets {
            let block = EnhancedPacketBlock {
                interface_id: 0,
                timestamp: epoch + Duration::from_nanos(*at),
                original_len: packet.len() as u32,
                data: Cow::Borrowed(packet),
                options: Vec::new(),
            };
            writer.write_pcapng_block(block).map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}

/// Wall-clock time at monotonic zero.
fn wall_clock_offset() -> Duration {
    let wall = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    wall.saturating_sub(Duration::from_nanos(clock::now()))
}
