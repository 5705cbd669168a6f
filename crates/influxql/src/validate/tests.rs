//! What is found out of a SELECT.
