"""Small Java of our own, compiled inside Spark's JVM by the Janino that Spark brings along.

An object of each class is kept by the JVM itself, for all processes that ever talk to it: what one
of them leaves behind when it is killed is then not left behind by each.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

_compiled: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_lock = Lock()


def compiled(gateway: Any, name: str) -> Any:
    """The object of the class in the file `name`.java beside this one.

    There is one per JVM: Py4J takes two classes of one name for the same.
    """
    with _lock:
        known = _compiled.setdefault(gateway, {})
        if name not in known:
            known[name] = _made(gateway, name)
        return known[name]


def _made(gateway: Any, name: str) -> Any:
    jvm, source = gateway.jvm, Path(__file__).with_name(f"{name}.java").read_text(encoding="utf-8")
    place = f"steadyview.{name}.{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    kept = jvm.java.lang.System.getProperties()
    found = kept.get(place)
    if found is None:
        found = _compiled_anew(gateway, name, source)
        kept.put(place, found)
    return found


def _compiled_anew(gateway: Any, name: str, source: str) -> Any:
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    found = compiler.getClassLoader().loadClass(name)
    nothing = gateway.new_array(jvm.java.lang.Class, 0)
    return found.getDeclaredConstructor(nothing).newInstance(
        gateway.new_array(jvm.java.lang.Object, 0)
    )
