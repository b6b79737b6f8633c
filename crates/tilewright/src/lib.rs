//! Compile and run tensor programs: the library and the command line.
