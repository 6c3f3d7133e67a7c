// The journal of an unfinished store (docs/store-format.md, section 6): lines of checksummed JSON. Work that
// the journal lists is on disk; work that it does not list did not happen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/files/file.h"

namespace sluice::store {

// The payloads up to the first line that is torn or wrong.
struct JournalContent {
  std::vector<std::string> records;
  Bytes valid_bytes = 0;
};
JournalContent read_journal(const std::string& path);  // empty if the file does not exist

// Not thread-safe.
class JournalWriter {
 public:
  // Continues after the first `keep` bytes; creates the file if it does not exist.
  explicit JournalWriter(const std::string& path, Bytes keep);
  void add(std::string_view payload);  // kept in memory until commit(); no line breaks
  // Writes and fdatasyncs. The data that the records describe must be synced before.
  void commit();
  Bytes pending_bytes() const { return pending_.size(); }  // bytes of records that commit() would write

 private:
  OutputFile file_;
  std::string pending_;
};

}  // namespace sluice::store
