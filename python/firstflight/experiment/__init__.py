"""From a plan to a results folder: what is loaded, in which order, and how a stopped run goes on."""
