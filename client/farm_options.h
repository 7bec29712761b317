#pragma once

#include <array>

#include "client/shared_options.h"

// The commands `hone session` and `hone device`, for option_table.cc alone.
namespace hone::client {

inline constexpr std::array kSessionPositionals = {
    PositionalSpec{.name = "ACTION",
                   .kind = ValueKind::kChoice,
                   .help = "What to do",
                   .choices = "list|show|watch|cancel"},
    PositionalSpec{.name = "SESSION",
                   .kind = ValueKind::kText,
                   .help = "show, watch, cancel: its id, or the first digits",
                   .required = false},
};
inline constexpr std::array kDevicePositionals = {
    PositionalSpec{.name = "ACTION",
                   .kind = ValueKind::kChoice,
                   .help = "What to do",
                   .choices = "list|drain|undrain|probe"},
    PositionalSpec{.name = "DEVICE",
                   .kind = ValueKind::kText,
                   .help = "drain, undrain, probe: WORKER/DEVICE, or how it begins",
                   .required = false},
};
inline constexpr OptionSpec kListFormat = {.name = "format",
                                           .letter = 'o',
                                           .kind = ValueKind::kChoice,
                                           .argument = "FORM",
                                           .help =
                                               "list: how to print it; json is the same as "
                                               "--json",
                                           .default_text = "table",
                                           .choices = "table|wide|json"};
inline constexpr std::array kSessionOptions = {
    kListFormat,
    OptionSpec{.name = "all",
               .letter = 'a',
               .kind = ValueKind::kFlag,
               .help = "list: all sessions, not only the latest 100"},
    kServer, kTls, kInsecureLoopback};
inline constexpr std::array kDeviceOptions = {kListFormat, kServer, kTls, kInsecureLoopback};

inline constexpr CommandSpec kSessionCommand = {
    .name = "session",
    .summary = "List, show, watch or cancel the tuning sessions of a farm",
    .description =
        "list prints the latest 100 sessions, with --all every one; show prints one; watch follows "
        "it to its end, as `hone tune --server` does; cancel ends it. What was measured stays in "
        "the log.",
    .positionals = kSessionPositionals,
    .options = kSessionOptions,
    .example = "hone session list --server tuner:7421 --tls me"};
inline constexpr CommandSpec kDeviceCommand = {
    .name = "device",
    .summary = "List, drain, undrain or probe the devices of a farm",
    .description =
        "list prints every worker's device with its state; drain lets a device finish what it has "
        "and gives it no more work; undrain gives it work again; probe measures its peak rates, "
        "and gives a quarantined or lost device that is as fast as its class work again. All but "
        "list need an admin's certificate.",
    .positionals = kDevicePositionals,
    .options = kDeviceOptions,
    .example = "hone device list --server tuner:7421 --tls me"};

}  // namespace hone::client
