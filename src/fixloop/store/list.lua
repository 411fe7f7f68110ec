-- The plain fields of many workflows of one shard. KEYS: a workflow and its history for each. The text of a removed
-- workflow is empty; an unusable one has the field `damaged`, which says why.

local function broken(kind, history, id, version)
  if kind == 'none' then return 'its state is gone' end
  if kind ~= 'hash' then return 'its state is a ' .. kind .. ' and has to be a hash' end
  if not version or #version > 15 or not tonumber(version) then return 'its state has no version' end
  local found = redis.call('TYPE', history).ok
  if found ~= 'list' then return found == 'none' and 'its history is gone' or 'its history is a ' .. found .. ' and has to be a list' end
  local entries = redis.call('LLEN', history)
  if tonumber(version) ~= entries then return 'its version is ' .. version .. ', and its history has ' .. entries .. ' entries' end
end

local function is_listed(id)
  if redis.call('ZSCORE', WORKFLOWS, id) then return true end
  local feature, number = string.match(id, '^(.*)%-(%d+)$')
  local living = redis.call('HGET', LIVE, feature)
  return living == number or living == id
end

local found = {}
for i = 9, #KEYS, 2 do
  local id, kind = string.match(KEYS[i], '[^:]*$'), redis.call('TYPE', KEYS[i]).ok
  local hash = kind == 'hash' and as_table(redis.call('HGETALL', KEYS[i])) or {}
  local why = broken(kind, KEYS[i + 1], id, hash.version)
  if kind == 'none' and not is_listed(id) then
    found[#found + 1] = ''
  else
    hash.damaged = why
    found[#found + 1] = plain_fields(hash)
  end
end
return found
