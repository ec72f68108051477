"""Views kept record by record: many view managers, one store, no transactions, exactly once.

Jacobsen, Lee, Yerneni, *View Maintenance in Web Data Platforms*. A view manager takes the entries
of its log streams and changes a store's records by operations that are atomic on one record each.
Here are its update programs: what they ask, request by request; between two requests anything may
happen elsewhere, and an answer may never come.

    for every view record the values shown follow one non-decreasing chain of base states  (strong)

What makes it so: a record changes by test-and-set (no update is lost), carries a signature (none is
done twice), and each log stream goes through one manager in order (none overtakes another).
Every form printed in the paper is here under the algorithm's number or with `Printed` in its name;
those that fail are kept for that, and a checker convicts them. The product uses the others.
Nothing is promised about two records together.
"""
