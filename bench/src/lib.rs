//! Benchmarks beside other dataplanes.
