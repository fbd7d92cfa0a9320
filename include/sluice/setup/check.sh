#!/bin/sh
# Checks what `make install` cannot install itself, and prints the Python to use. Every part that is missing or too old is named with how to get it.
missing=0

say() {
    printf '%s\n' "$@" >&2
    missing=1
}

python=
for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python3.14}; do
    if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    say "Python 3.11 to 3.14 with venv is needed; found: $( (${PYTHON:-python3} --version 2>&1) | head -n 1 || true)." \
        "  Debian, Ubuntu: sudo apt-get install python3 python3-venv (or pyenv install 3.11)" \
        "  macOS:          brew install python@3.12"
fi

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
case $version in
17 | 21 | 25) ;;
*)
    say "Java 17, 21 or 25 is needed; found: ${version:-none}${JAVA_HOME:+ (JAVA_HOME is $JAVA_HOME)}." \
        "  Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless" \
        "  macOS:          brew install openjdk@17 && export JAVA_HOME=\"\$(brew --prefix openjdk@17)\""
    ;;
esac

if ! command -v make >/dev/null 2>&1; then
    say "make is needed." "  Debian, Ubuntu: sudo apt-get install make" "  macOS:          xcode-select --install"
fi

[ "$missing" -eq 0 ] || exit 1
printf '%s\n' "$python"
