// Text that knows which of its bytes a request has brought, and which are the program's or the model's own
// (those of a chat template). Control tokens are recognised in the latter alone.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::tokenizer {

struct ByteRange {
  std::size_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};

// The ranges within [begin, end), as offsets from `begin`.
std::vector<ByteRange> ranges_within(std::span<const ByteRange> ranges, std::size_t begin, std::size_t end);

enum class Origin { kTemplate, kRequest };

// Bytes, and ranges of them that are the request's: ascending, not empty, and none touches the next.
// Thread-compatible.
class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string bytes, Origin origin = Origin::kTemplate);

  const std::string& bytes() const { return bytes_; }
  std::span<const ByteRange> request() const { return request_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool has_request() const { return !request_.empty(); }

  void append(std::string_view bytes, Origin origin);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  void append(const MarkedText& other, std::size_t begin, std::size_t end);
  // The bytes [begin, end) with their marks. REQUIRES: begin <= end <= size()
  MarkedText part(std::size_t begin, std::size_t end) const;

  // Calls `visit(std::string_view, Origin)` with each longest run of bytes of one origin.
  template <class Visit>
  void each_run(Visit visit) const {
    const std::string_view all = bytes_;
    std::size_t done = 0;
    for (const ByteRange& range : request_) {
      if (range.begin > done) visit(all.substr(done, range.begin - done), Origin::kTemplate);
      visit(all.substr(range.begin, range.end - range.begin), Origin::kRequest);
      done = range.end;
    }
    if (done < all.size()) visit(all.substr(done), Origin::kTemplate);
  }

 private:
  void mark(std::size_t begin, std::size_t end);

  std::string bytes_;
  std::vector<ByteRange> request_;
};

}  // namespace sluice::tokenizer
