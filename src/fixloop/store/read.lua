-- One workflow as it stands, with the shard's clock.

local WORKFLOW, HISTORY = KEYS[9], KEYS[10]

local hash = as_table(redis.call('HGETALL', WORKFLOW))
local clock, wall, away = read_clock()
local tickets, deadlines = {}, {}
for name, value in pairs(hash) do
  local kind, rest = string.sub(name, 1, 2), string.sub(name, 3)
  if kind == 't:' then
    tickets[#tickets + 1] = {value, hash['s:' .. rest], hash['n:' .. rest] or '0'}
  elseif kind == 'd:' then
    deadlines[#deadlines + 1] = {rest, value}
  end
end
return {seconds(wall), seconds(clock), seconds(away), hash.version or '', head_of(hash.head), hash.snapshot or '',
  hash.stale or '0', plain_fields(hash), tickets, deadlines,
  leant_on(hash.snapshot, HISTORY)}
