#!/bin/sh
# Is there a Java that Spark 4 runs on (17 or newer)? JAVA_HOME is asked first, as Spark does.
# On Debian and Ubuntu, as root, a missing one is installed; elsewhere the command is told. Exit 1: none.
set -eu

NEEDED=17

find_java() {
    if [ -n "${JAVA_HOME:-}" ]; then
        echo "$JAVA_HOME/bin/java"
    else
        command -v java || true
    fi
}

# The major version: 17 of `version "17.0.15"`, 8 of `version "1.8.0_392"`; nothing if it does not run.
major_of() {
    "$1" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

good_java() {
    java=$(find_java)
    [ -n "$java" ] && [ -x "$java" ] || return 1
    major=$(major_of "$java")
    [ -n "$major" ] && [ "$major" -ge "$NEEDED" ]
}

found() {
    java=$(find_java)
    if [ -z "$java" ]; then
        echo "no java on the PATH, and JAVA_HOME is not set"
    elif [ ! -x "$java" ]; then
        echo "JAVA_HOME is \"$JAVA_HOME\", where there is no bin/java"
    else
        echo "\"$java\" is version \"$(major_of "$java")\""
    fi
}

command_for_this_system() {
    if [ -n "${JAVA_HOME:-}" ]; then
        echo "unset JAVA_HOME   (or set it to a Java $NEEDED or newer), then again"
    elif command -v apt-get >/dev/null 2>&1; then
        echo "sudo apt-get update && sudo apt-get install -y openjdk-17-jre-headless"
    elif command -v dnf >/dev/null 2>&1; then
        echo "sudo dnf install -y java-17-openjdk-headless"
    elif command -v brew >/dev/null 2>&1; then
        echo "brew install openjdk@17 && export JAVA_HOME=\"\$(brew --prefix openjdk@17)\""
    else
        echo "install a JRE 17 or newer (https://adoptium.net) and set JAVA_HOME"
    fi
}

refuse() {
    {
        echo "Java $NEEDED or newer is needed (Spark runs on it)"
        echo "detail: $(found)"
        echo "hint: run: $(command_for_this_system)"
    } >&2
    exit 1
}

good_java && exit 0
# A JAVA_HOME that somebody set to something else is theirs to change.
[ -z "${JAVA_HOME:-}" ] || refuse
command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ] || refuse

echo "Java $NEEDED: $(found); installing openjdk-17-jre-headless ..."
if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless; } >/dev/null
then
    refuse
fi
good_java || refuse
