//! The simulator as WebAssembly, for the playground's page (`playground/`).
//!
//! The page makes the same job for a load as `python/firstflight/engines/simulate.py`, and gets the same record,
//! byte for byte. This crate only passes text to [`firstflight_sim`] and returns its answer.
//!
//! The target is `wasm32-wasip1`. QUIC's state machine asks an operating system for a clock to count from, and for
//! random numbers that no result depends on. WASI has functions for these, which the page provides. [`Playground`]
//! is the same on every target. The functions that JavaScript calls are those of `exports`, which exists in
//! WebAssembly only.
#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]

#[cfg(target_family = "wasm")]
mod exports;

use firstflight_page::Page;
use firstflight_sim::{Job, SimPage, Traced, traced};

/// Prepared pages, and their loads.
#[derive(Debug, Default)]
pub struct Playground {
    pages: Vec<SimPage>,
}

impl Playground {
    /// Prepares a page. Returns its number, from 0 upwards.
    ///
    /// `scheme`: as for `--scheme`, `recorded`, `http` or `https`. `profile`: in the profile format.
    ///
    /// # Errors
    /// What is wrong with the profile or the scheme.
    pub fn prepare(&mut self, scheme: &str, profile: &str) -> Result<usize, String> {
        let mut page = Page::from_json(profile).map_err(|error| error.to_string())?;
        match scheme {
            "recorded" => {}
            "http" => page.clear_scheme(),
            "https" => page.secure_scheme(),
            other => {
                return Err(format!(
                    "scheme: {other:?} is none; hint: recorded, http or https"
                ));
            }
        }
        self.pages.push(SimPage::new(&page));
        Ok(self.pages.len() - 1)
    }

    /// Loads a page once. Returns the record, then a line for each event of a connection's first packets: sent,
    /// arrived or lost.
    ///
    /// `connection`: its number in the record. `packets`: how many packets to trace, both directions together.
    /// `job`: as `firstflight_sim` parses it.
    ///
    /// # Errors
    /// There is no such page, or the job is malformed.
    pub fn load(&self, page: usize, connection: u32, packets: u32, job: &str) -> Result<String, String> {
        let page = self
            .pages
            .get(page)
            .ok_or_else(|| format!("page {page} was never prepared"))?;
        let job = Job::from_json(job).map_err(|error| error.to_string())?;
        let of = Traced::First { connection, packets };
        let (record, packets) = traced(page, &job, of).map_err(|error| error.to_string())?;
        let mut answer = serde_json::to_string(&record).map_err(|error| error.to_string())?;
        for packet in packets {
            answer.push('\n');
            answer.push_str(&packet);
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use firstflight_sim::simulate;

    use super::*;

    const PROFILE: &str = r#"{"format": "firstflight-profile/1", "name": "one", "resources": [
        {"url": "http://a.test/", "kind": "document", "mime": "text/html",
         "request_bytes": 300, "header_bytes": 200, "body_bytes": 5}]}"#;
    const JOB: &str = r#"{"path": {"rtt_ms": 100}, "mode": "tfo", "cookies": "warm"}"#;

    #[test]
    fn an_answer_is_the_record_that_the_simulator_gives_and_a_line_for_each_packet() {
        let mut playground = Playground::default();
        let page = playground.prepare("recorded", PROFILE).unwrap();
        let answer = playground.load(page, 0, 28, JOB).unwrap();
        let (record, packets) = answer.split_once('\n').unwrap();
        let same = SimPage::new(&Page::from_json(PROFILE).unwrap());
        let expected = simulate(&same, &Job::from_json(JOB).unwrap()).unwrap();
        assert_eq!(record, serde_json::to_string(&expected).unwrap());
        assert!(
            packets
                .lines()
                .next()
                .unwrap()
                .contains("sent    up   #0 Flags [S]")
        );
    }

    #[test]
    fn packets_are_those_of_the_connection_that_is_asked_for() {
        let mut playground = Playground::default();
        let page = playground.prepare("recorded", PROFILE).unwrap();
        let [first, second] = [0, 1].map(|number| playground.load(page, number, 28, JOB).unwrap());
        assert!(first.lines().count() > 1);
        assert_eq!(first.lines().next(), Some(second.as_str()));
    }

    #[test]
    fn only_the_first_packets_are_written_and_the_fate_of_each() {
        let mut playground = Playground::default();
        let page = playground.prepare("recorded", PROFILE).unwrap();
        let [all, two] = [28, 2].map(|packets| playground.load(page, 0, packets, JOB).unwrap());
        let is_of = |line: &&str, what| line.split_whitespace().nth(1) == Some(what);
        let counted = |answer: &str, what| answer.lines().skip(1).filter(|line| is_of(line, what)).count();
        assert!(counted(&all, "sent") > 2);
        assert_eq!([counted(&two, "sent"), counted(&two, "arrived")], [2, 2]);
        // The record is the same, and so are the traced lines.
        assert!(two.lines().all(|line| all.lines().any(|other| other == line)));
    }

    #[test]
    fn a_page_under_https_is_loaded_over_tls() {
        let mut playground = Playground::default();
        let [recorded, https] =
            ["recorded", "https"].map(|scheme| playground.prepare(scheme, PROFILE).unwrap());
        assert!(
            playground
                .load(recorded, 0, 0, JOB)
                .unwrap()
                .contains("http://a.test")
        );
        assert!(
            playground
                .load(https, 0, 0, JOB)
                .unwrap()
                .contains("https://a.test")
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut playground = Playground::default();
        assert!(
            playground
                .prepare("recorded", "{}")
                .unwrap_err()
                .contains("format")
        );
        assert!(
            playground
                .prepare("ftp", PROFILE)
                .unwrap_err()
                .contains("hint: recorded")
        );
        assert_eq!(
            playground.load(7, 0, 0, JOB).unwrap_err(),
            "page 7 was never prepared"
        );
        let page = playground.prepare("recorded", PROFILE).unwrap();
        assert!(playground.load(page, 0, 0, "{}").unwrap_err().contains("path"));
    }
}
