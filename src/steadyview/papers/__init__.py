"""The papers' algorithms on live databases, beside the product's way and not through it.

Belongs here: what lets an object of `maintenance` run where sources are databases that change while
they are asked: messages made of the update log (`deliveries`), answers that are FIFO and atomic
(`answering`), rows that Spark computes (`spark_view_algebra`), installs made durable (`forced`);
what a view showed, written down to be judged (`recording`); the culprit (`conventional`).
Does not belong here: the algorithms themselves (`maintenance`); who is due, and what becomes of a
view that fails (`runtime`, whose `one_by_one` is all that it knows of this room).
Law: the room is handed what it works on (`live`) and decides nothing about other views.
"""
