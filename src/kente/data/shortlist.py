class Shortlist: pass
