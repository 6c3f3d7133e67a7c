// The journal of an unfinished store (docs/store-format.md, section 6): lines of checksummed JSON. What it
// says is done is on disk; what it does not say did not happen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace sluice::store {

// The payloads up to the first line that is torn or wrong.
struct JournalContent {
  std::vector<std::string> records;
  Bytes valid_bytes = 0;
};
JournalContent read_journal(const std::string& path);  // no file: nothing

// Not thread-safe.
class JournalWriter {
 public:
  // Goes on after the first `keep` bytes; creates the file if it is not there.
  explicit JournalWriter(const std::string& path, Bytes keep);
  void add(std::string_view payload);  // kept in memory until commit(); no line breaks
  void commit();  // writes and fdatasyncs. The data that the records speak of must be synced before

 private:
  OutputFile file_;
  std::string pending_;
};

}  // namespace sluice::store
