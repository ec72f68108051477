"""Small Java of our own, compiled inside Spark's JVM by the Janino that Spark brings along."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def compiled(gateway: Any, name: str) -> Any:
    """An object of the class in the file `name`.java beside this one."""
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(Path(__file__).with_name(f"{name}.java").read_text(encoding="utf-8"))
    found = compiler.getClassLoader().loadClass(name)
    nothing = gateway.new_array(jvm.java.lang.Class, 0)
    return found.getDeclaredConstructor(nothing).newInstance(
        gateway.new_array(jvm.java.lang.Object, 0)
    )
