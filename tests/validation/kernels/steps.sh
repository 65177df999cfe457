#!/bin/sh
# steps.sh STEP...: steps of the core, in the guest, as its root. Each leaves STEP.log, STEP.status and what it found
# in /job/out.
set -u
out=/job/out
python=.venv/bin/python
firstflight=.venv/bin/firstflight
export CI=true # a test that cannot run fails

# The ordinary user: the folders above the checkout and the environment's Python open, in this guest only.
as_user() {
  for file in "$PWD/." "$(readlink -f "$python")"; do
    while [ "$file" != / ]; do file=$(dirname "$file") && chmod o+rx "$file"; done
  done
  mkdir -p /home/visitor && chown 54321:54321 /home/visitor
  HOME=/home/visitor setpriv --reuid=54321 --regid=54321 --clear-groups --inh-caps=-all -- "$@"
}

tests() { "$python" -m pytest -q -p no:cacheprovider --durations=5 --junit-xml="$out/$step.xml" "$@"; }

# What deviates from RFC 7413 is a finding (status 1 with a document), not a failure of the step.
found() { [ "$?" -le 1 ] && grep -q '"not judged": 0' "$1"; }

one() {
  case $step in
    # Both clocks in every mode of transport: proof, round trips, and the bytes of each first flight.
    core) tests tests/parity/test_mode_parity.py -k "round_trips_that_its_mode_promises and 4" ;;
    doctor) "$firstflight" doctor --json ;;
    check) "$firstflight" check --jobs 2 --json >$out/check.json || found $out/check.json ;;
    check-user) as_user "$firstflight" check --jobs 2 --json >$out/check-user.json || found $out/check-user.json ;;
    loads) tests tests/e2e/test_lab_loads.py tests/e2e/test_lab_treatments.py ;;
    proof) tests tests/e2e/test_lab_proof.py tests/e2e/test_lab_seal.py tests/e2e/test_ipv6.py ;;
    https) tests tests/e2e/test_https_loads.py tests/e2e/test_claimed_early_data.py ;;
    transport) tests tests/e2e/test_transport.py ;;
    modes) tests tests/parity/test_mode_parity.py ;;
    scenarios) tests tests/parity/test_scenarios.py tests/parity/test_packet_fates.py ;;
    versions) tests tests/parity/test_tls_parity.py tests/parity/test_http2_parity.py tests/parity/test_ecn_parity.py ;;
    replay) tests tests/parity/test_replay.py ;;
    *) echo "error: there is no step $step. hint: $0 lists them" && return 2 ;;
  esac
}

worst=0
for step in "$@"; do
  one >$out/$step.log 2>&1
  status=$?
  echo $status >$out/$step.status
  [ $status -le $worst ] || worst=$status
  echo "$step: status $status, $(cut -d' ' -f1 /proc/uptime) s after the start: $(tail -n 1 $out/$step.log | cut -c1-100)"
done
exit $worst
