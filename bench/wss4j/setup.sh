#!/bin/sh
# Fetches WSS4J from Maven Central into ~/.cache/busbar-wss4j, for the tests in crates/security/tests/wss4j.rs.
set -eu
cd "$(dirname "$0")"
mvn -q -B dependency:copy-dependencies -DoutputDirectory="$HOME/.cache/busbar-wss4j/lib"
