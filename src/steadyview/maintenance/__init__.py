"""The papers' maintenance algorithms, each a state machine without I/O (law 2).

Belongs here: what to ask, in which order, and how answers and updates combine.
Does not belong here: how a relation is stored, asked for or joined; a clock; a thread; the
product's own way, which is a plan over versions (`plans`).
Law: events in, actions out (`events`); data is opaque and worked on only through a `ViewAlgebra`.
`algorithms` lists them all, and the product's way beside them. `ipda`: which records of a delta a
deferred view is rolled forward by.
"""
