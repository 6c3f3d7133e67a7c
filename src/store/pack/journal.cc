#include "store/pack/journal.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "store/format.h"

namespace sluice::store {
namespace {

constexpr std::size_t kSumDigits = 16;

std::uint64_t sum_of(std::string_view text) {
  return xxh3(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

JournalContent read_journal(const std::string& path) {
  JournalContent content;
  if (!is_there(path)) return content;
  const std::string text = read_text_file(path, kMaxManifestBytes);
  std::string_view rest = text;
  for (;;) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos || end <= kSumDigits || rest[kSumDigits] != ' ') break;
    const std::string_view payload = rest.substr(kSumDigits + 1, end - kSumDigits - 1);
    std::uint64_t sum = 0;
    if (!parse_hex64(rest.substr(0, kSumDigits), sum) || sum != sum_of(payload)) break;
    content.records.emplace_back(payload);
    content.valid_bytes += end + 1;
    rest.remove_prefix(end + 1);
  }
  return content;
}

JournalWriter::JournalWriter(const std::string& path, Bytes keep)
    : file_(is_there(path) ? OutputFile::open_for_append(path, keep) : OutputFile::create(path)) {}

void JournalWriter::add(std::string_view payload) {
  SLUICE_CHECK(payload.find('\n') == std::string_view::npos);
  pending_ += hex64(sum_of(payload));
  pending_ += ' ';
  pending_ += payload;
  pending_ += '\n';
}

void JournalWriter::commit() {
  if (pending_.empty()) return;
  file_.write(std::string_view(pending_));
  file_.sync();
  pending_.clear();
}

}  // namespace sluice::store
