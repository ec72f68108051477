"""Small Java of our own, compiled inside Spark's JVM by the Janino that Spark brings along."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

_compiled: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_lock = Lock()


def compiled(gateway: Any, name: str) -> Any:
    """An object of the class in the file `name`.java beside this one.

    Compiled once per JVM: Py4J takes two classes of one name for the same.
    """
    with _lock:
        known = _compiled.setdefault(gateway, {})
        if name not in known:
            known[name] = _made(gateway, name)
        return known[name]


def _made(gateway: Any, name: str) -> Any:
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(Path(__file__).with_name(f"{name}.java").read_text(encoding="utf-8"))
    found = compiler.getClassLoader().loadClass(name)
    nothing = gateway.new_array(jvm.java.lang.Class, 0)
    return found.getDeclaredConstructor(nothing).newInstance(
        gateway.new_array(jvm.java.lang.Object, 0)
    )
