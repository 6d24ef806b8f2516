# SPDX-License-Identifier: GPL-2.0-only
package My::Suite::Table_cache_dump;

@ISA = qw(My::Suite);

return "No table_cache_dump plugin" unless $ENV{TABLE_CACHE_DUMP_SO};
return "No table_cache_info plugin" unless $ENV{TABLE_CACHE_INFO_SO};

sub is_default { 1 }

bless { };
