// A module of its own, so that the example finds its page of documentation here.
module example
