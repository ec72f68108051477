"""Paper 003, measured: levels of consistency by view class, technique and fault; Figures 2 to 8."""
