#include "reproduce/report.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"

namespace sluice::reproduce {
namespace {

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return out;
}

}  // namespace

std::string mode_text(const ReportRow& row) {
  std::string text;
  for (const Evidence one : row.evidence)
    text += (text.empty() ? "" : ", ") + std::string(1, static_cast<char>(one));
  return text;
}

std::string ReportConfiguration::hash() const {
  const std::string all =
      Json{model, flags, machine, version}.dump(-1, ' ', false, Json::error_handler_t::replace);
  return hex64(xxh3(std::as_bytes(std::span(all.data(), all.size())))).substr(0, 12);
}

std::string to_markdown(const Report& report) {
  const ReportConfiguration& configuration = report.configuration;
  std::string text =
      fmt::format("# {}\n\nMachine: {}\n\nMade by: `{}`\n\n", report.title, report.machine, report.command);
  text +=
      fmt::format("Configuration {}: model {}; flags {}; machine {}; version {}\n\n", configuration.hash(),
                  configuration.model, configuration.flags, configuration.machine, configuration.version);
  if (!report.played.empty())
    text += fmt::format("The trace's routing is {}, and not its model's own.\n\n", report.played);
  text +=
      "Mode: R a real run on this machine, S recorded or synthetic routing replayed with a virtual clock, A "
      "arithmetic or "
      "counted bits, N cannot be "
      "shown here.\n\n| ID | quantity | paper | here | mode | configuration | conditions "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const ReportRow& row : report.rows)
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", cell(row.id), cell(row.quantity),
                    cell(row.paper), cell(row.ours), mode_text(row), configuration.hash(), cell(row.note));
  text += "\nOne row at a time:\n\n";
  if (!report.prepare.empty()) text += fmt::format("- first: `{}`\n", report.prepare);
  for (const ReportRow& row : report.rows)
    for (const std::string& command : row.commands) text += fmt::format("- {}: `{}`\n", row.id, command);
  for (const ReportSection& section : report.sections)
    text += fmt::format("\n## {}\n\n{}\n", section.heading, section.markdown);
  for (const ReportPicture& picture : report.pictures)
    text += fmt::format("\n![{}]({})\n\n{}\n", picture.caption, picture.file, picture.caption);
  return text;
}

Json to_json(const Report& report) {
  Json rows = Json::array(), pictures = Json::array();
  for (const ReportRow& row : report.rows)
    rows.push_back({{"id", row.id},
                    {"quantity", row.quantity},
                    {"paper", row.paper},
                    {"ours", row.ours},
                    {"mode", mode_text(row)},
                    {"configuration", report.configuration.hash()},
                    {"note", row.note},
                    {"commands", row.commands.empty() ? std::vector{report.command} : row.commands}});
  for (const ReportPicture& picture : report.pictures) pictures.push_back(picture.file);
  Json json = {{"title", report.title},
               {"machine", report.machine},
               {"command", report.command},
               {"prepare", report.prepare},
               {"configuration",
                {{"hash", report.configuration.hash()},
                 {"model", report.configuration.model},
                 {"flags", report.configuration.flags},
                 {"machine", report.configuration.machine},
                 {"version", report.configuration.version}}},
               {"rows", rows},
               {"pictures", pictures},
               {"data", report.data}};
  if (!report.played.empty()) json["played"] = report.played;
  return json;
}

void write_report(const Report& report, const std::string& directory, const std::string& name) {
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  if (code) throw io_error("mkdir", directory, code.value());
  for (const ReportPicture& picture : report.pictures)
    write_file_atomically(directory + "/" + picture.file, picture.svg);
  write_file_atomically(directory + "/" + name + ".json",
                        to_json(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  write_file_atomically(directory + "/" + name + ".md", to_markdown(report));
}

}  // namespace sluice::reproduce
