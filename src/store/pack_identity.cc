#include "store/pack_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "store/json_reader.h"

namespace sluice::store {
namespace {

// Times as strings: they may be negative.
void append_source(std::string& out, const SourceFile& file) {
  out += "[";
  append_json_string(out, file.relative);
  out += fmt::format(",{},\"{}\",\"{}\"]", file.size, file.modified_ns, file.changed_ns);
}

std::int64_t read_time(JsonReader& json) {
  const std::string text = json.read_string();
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

SourceFile read_source(JsonReader& json) {
  SourceFile file;
  json.begin_array();
  json.next_item();
  json.read_string(file.relative);
  json.next_item();
  file.size = json.read_number();
  json.next_item();
  file.modified_ns = read_time(json);
  json.next_item();
  file.changed_ns = read_time(json);
  json.next_item();
  return file;
}

// Names the first file that is not as it was.
std::string difference(const std::vector<SourceFile>& then, const std::vector<SourceFile>& now) {
  const auto find = [](const std::vector<SourceFile>& files, const std::string& name) {
    return std::find_if(files.begin(), files.end(),
                        [&](const SourceFile& file) { return file.relative == name; });
  };
  for (const SourceFile& file : now) {
    const auto old = find(then, file.relative);
    if (old == then.end()) return file.relative + " is new";
    if (!same_version(*old, file)) return file.relative + " was changed";
  }
  for (const SourceFile& file : then) {
    if (find(now, file.relative) == now.end()) return file.relative + " is gone";
  }
  return "other experts";
}

}  // namespace

bool same_version(const SourceFile& a, const SourceFile& b) {
  return a.size == b.size && a.modified_ns == b.modified_ns && a.changed_ns == b.changed_ns;
}

std::string identity_record(const PackIdentity& identity) {
  std::string text = "{\"journal\":1,\"options\":";
  append_json_string(text, identity.options);
  text += ",\"plan\":\"" + identity.plan + "\",\"sources\":[";
  for (const SourceFile& file : identity.source->files) {
    if (text.back() != '[') text += ",";
    append_source(text, file);
  }
  return text + "]}";
}

void check_identity(const std::string& record, const PackIdentity& identity, const std::string& partial) {
  if (record == identity_record(identity)) return;
  const std::string start_over = "or remove " + partial + " to start over";
  JsonReader json(record, partial);
  std::string key, options;
  std::vector<SourceFile> then;
  json.begin_object();
  while (json.next_key(key)) {
    if (key == "options") {
      options = json.read_string();
    } else if (key == "sources") {
      for (json.begin_array(); json.next_item();) then.push_back(read_source(json));
    } else {
      json.skip_value();
    }
  }
  if (options != identity.options) {
    throw Error(ErrorKind::kInvalid, "the unfinished store was begun with other options")
        .in(partial)
        .expected(options)
        .found(identity.options)
        .fix("finish it with the options it was begun with, " + start_over);
  }
  throw Error(ErrorKind::kInvalid, "the source is not what it was when the pack was interrupted")
      .in(identity.source->path)
      .found(difference(then, identity.source->files))
      .fix("restore it, " + start_over);
}

}  // namespace sluice::store
