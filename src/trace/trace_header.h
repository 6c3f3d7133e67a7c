// The bytes of a trace before its first record: magic, version, and the JSON header (docs/trace-format.md,
// sections 1 and 2).
#pragma once

#include <string>

#include "trace/routing_trace.h"
#include "trace/trace_input.h"

namespace sluice::trace {

// What to do about a damaged trace of our own.
inline constexpr const char* kCopyAgain = "copy the file again, or record it again";

// The version that a trace with this header has: the oldest that can hold it.
std::uint32_t trace_version(const TraceHeader& header);

// REQUIRES: identity and sizes; names and numbers within the bounds of the format.
std::string trace_header_bytes(const TraceHeader& header);

// Takes these bytes from the start of a file. Error(kInvalid) for a file that is not a trace or whose header
// does not follow the format, (kUnsupported) for another version, (kCorrupt) for a wrong checksum and for a
// file that ends within them.
TraceHeader read_trace_header(TraceInput& input);

}  // namespace sluice::trace
