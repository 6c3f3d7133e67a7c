#include "store/pack/pack_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/error.h"
#include "store/json_reader.h"

namespace sluice::store {
namespace {

// Times are strings because they may be negative.
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

SourceFile read_named_source(JsonReader& json) {
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

struct Difference {
  std::string reason;                // the first reason not to resume; empty: none
  std::vector<std::string> changed;  // files other than weights
};

Difference difference(const std::vector<SourceFile>& then, const PackIdentity& identity) {
  const std::vector<SourceFile>& now = identity.source->files;
  const auto find = [](const std::vector<SourceFile>& files, const std::string& name) {
    return std::find_if(files.begin(), files.end(),
                        [&](const SourceFile& file) { return file.relative == name; });
  };
  Difference result;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto old = find(then, now[i].relative);
    if (old == then.end()) return {now[i].relative + " is new", {}};
    if (same_version(*old, now[i])) continue;
    if (!identity.weights[i]) {
      result.changed.push_back(now[i].relative);
    } else if (old->size == now[i].size) {
      return {now[i].relative + " was changed, or its time stamps or mode were", {}};
    } else {
      return {now[i].relative + " was changed", {}};
    }
  }
  for (const SourceFile& file : then) {
    if (find(now, file.relative) == now.end()) return {file.relative + " is gone", {}};
  }
  return result;
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

std::vector<std::string> check_identity(const std::string& record, const PackIdentity& identity,
                                        const std::string& partial) {
  if (record == identity_record(identity)) return {};
  JsonReader json(record, partial);
  std::string key, options, plan;
  std::vector<SourceFile> then;
  json.begin_object();
  while (json.next_key(key)) {
    if (key == "options") {
      options = json.read_string();
    } else if (key == "plan") {
      plan = json.read_string();
    } else if (key == "sources") {
      for (json.begin_array(); json.next_item();) then.push_back(read_named_source(json));
    } else {
      json.skip_value();
    }
  }
  if (options != identity.options) {
    throw Error(ErrorKind::kInvalid, "the unfinished store was begun with other options")
        .in(partial)
        .expected(identity.options)
        .found(options)
        .fix("finish it with the options it was begun with, or remove " + partial + " to start over");
  }
  Difference found = difference(then, identity);
  if (found.reason.empty() && plan != identity.plan) found.reason = "other experts";
  if (found.reason.empty()) return std::move(found.changed);
  throw Error(ErrorKind::kInvalid, "the source is not what it was when the pack was interrupted")
      .in(identity.source->path)
      .expected("the files and experts that the pack began with")
      .found(found.reason)
      .fix("remove " + partial + " to start over");
}

}  // namespace sluice::store
