SELECT id FROM /*!*/twice.item
----
SELECT id FROM /*!*/twice.B.ITEM
